"""Other people's code, from folders that the user names, beside ours."""
