"""The command line program ``tocsin``: one file a command."""
