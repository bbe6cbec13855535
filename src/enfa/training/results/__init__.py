"""What runs came to: records, result files and tables."""
