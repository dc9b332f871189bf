#!/bin/sh
# install.sh FOLDER WHEEL: a virtual environment in FOLDER with the wheel, PostgreSQL and channels. EXTRAS names others.
set -eu
folder=$1 wheel=$2
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --no-cache-dir --disable-pip-version-check "$wheel[${EXTRAS:-postgres,notify}]"
# Nothing is installed later: without pip, less has to be kept up to date.
"$folder/bin/python" -m pip uninstall --yes --quiet pip
