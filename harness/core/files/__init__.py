"""Files, which a stranger may have made: how they are opened, checked and written."""
