"""How results are shown, one file per section: functions from stored results to sections of a page. Nothing is
measured here."""
