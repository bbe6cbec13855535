"""What is measured, one file per section: functions that return plain JSON data and draw nothing."""
