"""The web page that an operator leaves open, and its server. It needs ``pip install 'tocsin[dashboard]'``."""
