# Every target is a line or two that calls a tool. `make PYTHON=python3.12 …` chooses the Python of .venv.
EXACT := $(if $(filter undefined default,$(origin PYTHON)),,--exact)
PYTHON ?= python3
NO_PYTHON := There is no $(PYTHON) here. Install Python 3.11 to 3.14 (from python.org or your system's packages), \
  or name yours: make lab PYTHON=/path/to/python3
IN_VENV := .venv/bin/python
PUBLISHED = $(if $(filter-out 0,$(SOLVED)),--solved) $(if $(INTO),--into "$(INTO)") $(NB)
unexport PYTHONHOME PYTHONPATH  # what other projects put there would hide the versions that are pinned here

.DEFAULT_GOAL := help
.PHONY: help set-up lab edit fresh present slides html test test-browser notebooks solutions lint bench clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s%s\n", $$1, $$2 }' Makefile

set-up:
	@command -v "$(PYTHON)" >/dev/null || { echo "$(NO_PYTHON)" >&2; exit 1; }
	@"$(PYTHON)" course_lib/classroom/bootstrap.py $(EXACT)

lab: set-up  ## open your own copies of the notebooks (in work/) in JupyterLab; ARGS="--no-browser --port 8899"
	@$(IN_VENV) -m course_lib.classroom lab $(ARGS)

fresh: set-up  ## begin notebook NB=03 again; the copy that you edited is kept under a dated name
	@$(IN_VENV) -m course_lib.classroom fresh $(NB)

present: set-up  ## teach notebook NB=05: live slides in JupyterLab, on a copy that is thrown away
	@$(IN_VENV) -m course_lib.classroom present $(NB) $(ARGS)

slides: set-up  ## build reveal.js decks with speaker notes in build/slides/; SOLVED=1 with solutions; INTO=/media/stick
	@$(IN_VENV) -m course_lib.publishing.slides $(PUBLISHED)

html: set-up  ## build the course as pages to read in build/html/; SOLVED=1 and INTO= as for slides
	@$(IN_VENV) -m course_lib.publishing.html $(PUBLISHED)

test: set-up  ## run the whole suite: every cell of every notebook, and tests/
	$(IN_VENV) -m pytest

test-browser: set-up  ## run the notebooks in a real Chromium
	$(IN_VENV) -m pytest -m browser -n 0

edit: set-up  ## for authors and presenters: open notebooks/ itself in JupyterLab
	@$(IN_VENV) -m course_lib.classroom edit $(ARGS)

notebooks: set-up  ## run all notebooks, or NB=03 alone, and write them in their canonical form
	$(IN_VENV) -m course_lib.publishing.canonical $(NB)

solutions: set-up  ## build and run the solved notebooks in build/solutions/
	$(IN_VENV) -m course_lib.publishing.solutions $(NB)

lint: set-up  ## check code and cells with ruff
	$(IN_VENV) -m ruff check .

bench: set-up  ## compare speed with a named peer, as ratios
	$(IN_VENV) tests/bench/run.py

clean:  ## remove .venv and build; work/ is yours and stays
	rm -rf .venv build
