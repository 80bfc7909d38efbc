"""Write the table of results and the charts of docs/learning.md."""
