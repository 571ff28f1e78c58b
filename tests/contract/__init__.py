"""What holds for every notebook of the course, one rule a function; each yields a sentence per breach.

`test_notebook_contract.py` applies the rules to the notebooks, and breaks each rule on purpose to see that it notices.
"""
from contract import form, lesson, slides
from contract.page import RULES, Page

__all__ = ["RULES", "Page", "form", "lesson", "slides"]
