"""Implement the playground: a web page for RASP programs, their heads and weights, and U.

:func:`answer` maps a request to an answer; both are JSON objects. The server (``local_server.py``)
calls it in worker processes with limits, and the static site (``static_site.py``) in the browser. The
scripts of the page (``page/``) draw the answers.
"""

from locum.interface.playground.answer import answer

__all__ = ["answer"]
