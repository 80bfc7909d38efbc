"""The playground: RASP, its heads, its weights and U on one page in the browser.

:func:`answer` is the whole of it: JSON in, JSON out. The server (``server.py``) hands requests to it in
worker processes with limits (``pool.py``), and the page (``page/``) draws what comes back.
"""

from locum.interface.playground.answer import answer

__all__ = ["answer"]
