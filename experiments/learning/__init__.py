"""The results and charts of docs/learning.md; what is trained is in src/locum/learning."""
