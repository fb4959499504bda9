"""The commands: where each is defined, and its line in `fedcdh --help`."""

from __future__ import annotations

from fedcdh.cli._lazy_group import CommandEntry

SITE = "At a site"
COORDINATOR = "At the coordinator"
TOOLS = "Tools"

ROUNDS = {
    "request": CommandEntry(
        "fedcdh.cli.request:request_command", "Write the next question to the sites, if there is one."
    ),
    "answer": CommandEntry("fedcdh.cli.answer:answer_command", "Answer a question of the coordinator at a site."),
}
SECURE_SUM = {
    "join": CommandEntry("fedcdh.cli.secure_sum_join:join_command", "Answer one round of a secure sum at a site."),
    "run": CommandEntry(
        "fedcdh.cli.secure_sum_run:run_command", "Write the next round of a secure sum, and in the end the sum."
    ),
}
KEYS = {
    "new": CommandEntry("fedcdh.cli.keys:new_command", "Make a pair of keys."),
    "sign": CommandEntry("fedcdh.cli.keys:sign_command", "Sign a file."),
    "verify": CommandEntry("fedcdh.cli.keys:verify_command", "Check who signed a file."),
}
LEDGER = {
    "show": CommandEntry("fedcdh.cli.ledger:show_command", "List all releases of this site."),
    "verify": CommandEntry("fedcdh.cli.ledger:verify_command", "Check that the ledger is complete and unchanged."),
    "withdraw": CommandEntry("fedcdh.cli.ledger:withdraw_command", "Record that a release was never sent."),
}
POLICY = {
    "show": CommandEntry("fedcdh.cli.policy:show_command", "Show the policy in force at this site."),
    "init": CommandEntry("fedcdh.cli.policy:init_command", "Write a policy with every rule at its default, to edit."),
}
FLOWER = {
    "init": CommandEntry("fedcdh.cli.flower:init_command", "Write the Flower app of a study."),
    "trial": CommandEntry("fedcdh.cli.flower:trial_command", "Run a complete Flower study on this machine."),
}

COMMANDS = {
    "profile": CommandEntry("fedcdh.cli.profile:profile_command", "Describe the columns of this site.", SITE),
    "summarize": CommandEntry(
        "fedcdh.cli.summarize:summarize_command", "Compute the summary of this site, the one file it sends.", SITE
    ),
    "advise": CommandEntry(
        "fedcdh.cli.advise:advise_command", "Find the smallest change that lets the summary leave.", SITE
    ),
    "inspect": CommandEntry("fedcdh.cli.inspect:inspect_command", "Show what a file reveals.", SITE),
    "ledger": CommandEntry(
        "fedcdh.cli._registry:LEDGER", "Show and check the list of all that has left this site.", SITE
    ),
    "policy": CommandEntry("fedcdh.cli._registry:POLICY", "Show the rules for what may leave this site.", SITE),
    "plan": CommandEntry("fedcdh.cli.plan:plan_command", "Make the plan that all sites follow.", COORDINATOR),
    "discover": CommandEntry(
        "fedcdh.cli.discover:discover_command", "Find the causal graph and the mechanisms that differ.", COORDINATOR
    ),
    "aggregate": CommandEntry(
        "fedcdh.cli.aggregate:aggregate_command", "Add up very many or very large summaries.", COORDINATOR
    ),
    "effect": CommandEntry(
        "fedcdh.cli.effect:effect_command", "Show how much one variable affects another.", COORDINATOR
    ),
    "report": CommandEntry(
        "fedcdh.cli.report:report_command", "Make an HTML report of a result, or letters to sites.", COORDINATOR
    ),
    "rounds": CommandEntry(
        "fedcdh.cli._registry:ROUNDS", "Adaptive rounds by file: ask sites again, or answer.", COORDINATOR
    ),
    "secure-sum": CommandEntry(
        "fedcdh.cli._registry:SECURE_SUM", "Add up summaries by secure aggregation, by file.", COORDINATOR
    ),
    "flower": CommandEntry("fedcdh.cli._registry:FLOWER", "Run studies of sites that are online.", COORDINATOR),
    "keys": CommandEntry("fedcdh.cli._registry:KEYS", "Make keys, sign files, check signatures.", TOOLS),
    "demo": CommandEntry("fedcdh.cli.demo:demo_command", "Analyse a simulated study of five hospitals.", TOOLS),
    "simulate": CommandEntry("fedcdh.cli.simulate:simulate_command", "Write a simulated study.", TOOLS),
    "compare": CommandEntry("fedcdh.cli.compare:compare_command", "Score a result against the true graph.", TOOLS),
    "experiment": CommandEntry("fedcdh.cli.experiment:experiment_command", "Repeat an experiment of the paper.", TOOLS),
}
