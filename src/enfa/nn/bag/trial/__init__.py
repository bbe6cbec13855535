"""What is looked at while a model is traced: convs of users' own, and whether marks are read."""
