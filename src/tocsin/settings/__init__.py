"""How settings are declared, read and described; which ones there are is in ``tocsin.config``."""
