"""A secure sum by file: a coordinator and sites that run commands and mail files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import studies
from masked_studies import ROUNDS

from fedcdh._io.storage import write_atomically
from fedcdh.cli import main
from fedcdh.cli.simulate import to_csv
from fedcdh.messages.aggregate_file import unpack_aggregate
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation.session import REQUEST_FILE_NAMES
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.plan import StudyPlan

OWN = ("--ledger", "releases.jsonl", "--key", "site.key")


@dataclass
class Mailed:
    """People who run commands and mail files."""

    root: Path
    monkeypatch: pytest.MonkeyPatch
    tables: studies.Tables
    study: Study

    @classmethod
    def of(
        cls, root: Path, monkeypatch: pytest.MonkeyPatch, tables: studies.Tables, plan: StudyPlan | None = None
    ) -> Mailed:
        keys = {client: SigningKey.generate() for client in tables}
        study = Study(plan or studies.plan_of(tables), keys={client: key.public for client, key in keys.items()})
        for client, table in tables.items():
            rows = zip(*(column.tolist() for column in table.values()), strict=True)
            write_atomically(root / client / "data.csv", to_csv(table, rows))
            write_atomically(root / client / "site.key", keys[client].to_pem(), private=True)
        write_atomically(root / "study.plan.json", study.to_json())
        return cls(root, monkeypatch, tables, study)

    def site(self, client: str, request: str, *arguments: str, code: int = 0, folder: str = "rounds") -> None:
        """A site answers a round; its answer goes to the coordinator's folder."""
        self.monkeypatch.chdir(self.root / client)
        asked = self.root / folder / request
        assert (
            main(
                [
                    "secure-sum",
                    "join",
                    "../study.plan.json",
                    str(asked),
                    "data.csv",
                    "--client",
                    client,
                    *OWN,
                    *arguments,
                ]
            )
            == code
        )
        for answer in Path().glob(f"{client}.*"):
            if answer.suffix in {f".{round_}" for round_ in ROUNDS}:
                (self.root / folder / answer.name).write_bytes(answer.read_bytes())
                answer.unlink()

    def coordinator(self, *arguments: str, code: int = 0, folder: str = "rounds") -> None:
        self.monkeypatch.chdir(self.root)
        assert main(["secure-sum", "run", "study.plan.json", folder, *arguments]) == code

    def run_rounds(self, gone: dict[str, str], *arguments: str, folder: str = "rounds") -> None:
        """All rounds of a session; `gone` are those who are silent from a round on."""
        self.coordinator(*arguments, folder=folder)
        for place, (request, round_) in enumerate(zip(REQUEST_FILE_NAMES.values(), ROUNDS, strict=True)):
            for client in self.tables:
                if ROUNDS.index(gone.get(client, "opened")) > place or client not in gone:
                    self.site(client, request, folder=folder)
            more = ["--go-on"] if round_ in gone.values() else []
            self.coordinator(*arguments, *more, folder=folder)

    def run(self, gone: dict[str, str], *arguments: str) -> Aggregate:
        self.run_rounds(gone, *arguments)
        blob = (self.root / "study.aggregate").read_bytes()
        return unpack_aggregate(blob, self.study.plan).aggregate
