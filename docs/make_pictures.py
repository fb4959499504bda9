"""Makes the pictures of the README anew, from the demo study: python docs/make_pictures.py (needs chromium)."""

import subprocess
import tempfile
from pathlib import Path

import fedcdh
from fedcdh.reporting import save

IMAGES = Path(__file__).parent / "images"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1440,1000"]

if __name__ == "__main__":
    result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    save(result, IMAGES / "plot.png")
    with tempfile.TemporaryDirectory() as folder:
        page = result.report(Path(folder) / "study.html")
        shot = f"--screenshot={IMAGES / 'report.png'}"
        subprocess.run(["chromium", *FLAGS, f"--user-data-dir={folder}/profile", shot, page.as_uri()], check=True)
