"""Pipelines that are refused: every problem in one pass, at its place, with what to do about it."""

import pathlib
import re
import unittest

from support import DONE, PPO, SMALL, WRONG_PIPELINE, Case, run, sets, with_roles


class BadPipeline(Case):
    def refuse(self, text, *texts, problems=1, words=()):
        """`validate` and `run` both refuse the pipeline with the same message, and `run` leaves nothing behind."""
        path = text if isinstance(text, pathlib.Path) else self.write("p.toml", text)
        validated = run("validate", path, *words)
        self.assert_refused(validated, *texts, problems=problems)
        started = run("run", path, "--run-dir", self.folder / "out", *words)
        self.assertEqual((started.returncode, started.stderr), (WRONG_PIPELINE, validated.stderr))
        self.assertFalse((self.folder / "out").exists(), "a run folder was made")
        return validated.stderr

    def test_missing_file(self):
        self.assert_refused(run("validate", self.folder / "none.toml"),
                            f"cannot read {self.folder}/none.toml: No such file or directory")

    def test_a_copied_pipeline_says_where_its_models_and_data_were_looked_for(self):
        where = f"a relative path starts at the folder of the file that it is written in, {self.folder}"
        text = PPO.read_text().replace('"models/tiny-arithmetic"', '"../models/tiny-arithmetic"', 1)
        message = self.refuse(text, f"checkpoint: there is no folder {self.folder.parent}/models/tiny-arithmetic",
                              f"checkpoint: there is no folder {self.folder}/models/tiny-arithmetic, and no such model",
                              f"path: there is no file {self.folder}/data/arithmetic_train.jsonl", problems=5)
        self.assertEqual(message.count(where), 5)

    def test_a_line_end_in_the_name_of_a_folder_is_escaped(self):
        path = self.write("new\nline/p.toml", 'extends = "none.toml"\n')
        self.assert_refused(run("validate", path), "new\\nline/none.toml")
        self.assert_refused(run("validate", path.parent / "q.toml"), "new\\nline/q.toml")

    def test_folder_in_place_of_a_file(self):
        folder = self.folder / "folder.toml"
        folder.mkdir()
        self.assert_refused(run("run", folder), str(folder))

    def test_syntax_error(self):
        self.refuse('[pipeline]\nname = "p"\niterations = = 3\n', "p.toml:3:14: error: ")

    def test_a_name_that_is_required_is_not_empty(self):
        self.refuse(self.layer('[nodes.reference]\nmodel = ""\n'), "p.toml:3:9: error: model must be a string", "this is empty")

    def test_a_base_that_is_empty(self):
        self.refuse(self.layer('[models.reference]\nbase_of = ""\n'), "p.toml:3:11: error: base_of of model "
                    "'reference' names no model", "with lora", words=("--set", "models.reference.checkpoint="))

    def test_a_date_is_taken_for_the_text_that_it_is(self):
        self.refuse(self.layer("[pipeline]\nname = 2026-01-01\n"), "p.toml:3:8: error: a date is not a value that pipelines use")
        self.refuse(self.layer("[models.actor]\ncheckpoint = 2026-01-01\n"), "a date is not", "there is no folder", "/2026-01-01",
                    problems=2)

    def test_unknown_key(self):
        self.refuse(self.layer("[nodes.generate]\nmax_new_token = 4\n"),
                    "p.toml:3:1: error: max_new_token is not a parameter of type \"generate\"",
                    "did you mean max_new_tokens?")

    def test_misspelt_key_of_an_objective(self):
        for key in ("objectve", "value_objektive", "policy_objective"):
            self.refuse(self.layer(f'[nodes.train]\n{key} = "ppo_clip"\n'), f"p.toml:3:1: error: {key} is not a parameter")

    def test_key_of_another_system_for_an_objective(self):
        base = PPO.parent / "dpo.toml"
        self.refuse(f'extends = "{base}"\n[nodes.train]\nloss_type = "sigmoid"\n',
                    "p.toml:3:1: error: loss_type is not a parameter of type \"train_dpo\"", "here this is objective")

    def test_unknown_table_key(self):
        self.refuse(self.layer("[pipeline]\niteration = 4\n"), "p.toml:3:1: error: iteration is not a parameter of [pipeline]",
                    "did you mean iterations?")

    def test_unknown_type(self):
        self.refuse(self.layer('[nodes.score]\ntype = "exact_mach"\n'), "p.toml:3:8: error: there is no node type \"exact_mach\"",
                    'did you mean "exact_match"?')

    def test_unknown_node(self):
        self.refuse(self.layer('[nodes.values]\ninputs = ["generat"]\n'),
                    "p.toml:3:11: error: 'values' takes input from 'generat', which is not a node",
                    'did you mean "generate"?')

    def test_what_lacks_a_node_or_model_that_was_removed_says_who_removed_it(self):
        for removed, problems in {"nodes.train=false": 2, "nodes.train=": 2, "nodes.generate=false": 4, "nodes.held_out=false": 1,
                                  "nodes.sync=false": 1, "models.actor=false": 4}.items():
            with self.subTest(removed):
                kind, name = re.match(r"(node|model)s\.(\w+)", removed).groups()
                message = self.refuse(self.layer(""), words=("--set", removed), problems=problems)
                for problem in re.findall(r"(?m)^\S+: (?:error|warning): (?:.+\n)+", message):
                    self.assertIn(f"      = --set {removed} removes {kind} '{name}'\n", problem)
        path = self.layer("[nodes]\nvalues = false\n")
        self.assertIn(f"      = {path}:3 removes node 'values'\n", self.refuse(path))

    def test_something_else_in_the_place_of_a_table_is_told_alone(self):
        refused = {
            "nodes.generate=3": ("--set:1:7: error: node 'generate' is a table, not an integer", "--set nodes.generate.KEY=VALUE "
                                 "sets one of its keys, and --set nodes.generate= removes the node"),
            "models.actor=off": ("--set:1:8: error: model 'actor' is a table, not a string",
                                 "--set models.actor= removes the model"),
            "nodes=false": ("--set:1:1: error: nodes is a table, not a boolean",
                            "--set nodes.NAME.KEY=VALUE sets one of the keys of a node"),
            "budget=false": ("--set:1:1: error: budget is a table, not a boolean", "--set budget.KEY=VALUE sets one of its keys")}
        for setting, texts in refused.items():
            with self.subTest(setting):
                self.refuse(self.layer(""), *texts, words=("--set", setting))
        self.refuse(self.layer("[nodes]\nvalues = 3\n"), "p.toml:3:1: error: node 'values' is a table, not an integer",
                    "write its keys below [nodes.values]")

    def test_problems_of_ranks_and_budget_do_not_wait_for_each_other(self):
        apart = self.write("apart.toml", with_roles("grpo.toml", 2, 1))
        cluster = ["[cluster]", "slots = 3", "ring = 3", "shard_ranks = 2", "[cluster.roles.train]", "elastic = true"]
        text = "\n".join([f'extends = "{apart}"', *cluster, "[log]", "colour = 3", ""])
        self.refuse(text, 'p.toml:3:9: error: 3 slots cannot be divided among 2 ranks of role "train"', "p.toml:4:8: error: a "
                    "ring of 3 cannot be made of 1 rank", "p.toml:5:15: error: shard_ranks have weights in common",
                    'p.toml:7:11: error: role "train" trains, and cannot be elastic', "p.toml:9:1: error: colour is not",
                    problems=5)
        self.refuse(self.layer("[log]\ncolour = 3\n[budget]\ntokens_in_flight = 600\n"), "p.toml:3:1: error: colour is not",
                    "p.toml:5:20: error: ", problems=2)
        self.refuse(self.layer("[budget]\ncolour = 3\n[runtime]\ncores = 1\n"), "p.toml:3:1: error: colour is not",
                    "p.toml:5:9: error: 2 executors (cpu:1, cpu) cannot share 1 core", problems=2)

    def test_unknown_column(self):
        self.refuse(self.layer('[nodes.train]\nold_logprobs = "rolout_logprobs"\n'),
                    "error: node 'train' reads column 'rolout_logprobs'",
                    "rollout_logprobs")

    def test_column_that_no_input_brings(self):
        self.refuse(self.layer('[nodes.rewards]\ninputs = ["score"]\n'),
                    "error: node 'rewards' reads column 'reference_logprobs'", "help: ")

    def test_unknown_model(self):
        self.refuse(self.layer('[nodes.values]\nmodel = "critics"\n'), "p.toml:3:9: error: 'values' uses model 'critics'",
                    'did you mean "critic"?')

    def test_wrong_type_of_value(self):
        self.refuse(self.layer('[nodes.generate]\nmax_new_tokens = "6"\n'),
                    "p.toml:3:18: error: max_new_tokens must be an integer")

    def test_value_out_of_range(self):
        self.refuse(self.layer("[nodes.advantages]\nlambda = 1.5\n"), "p.toml:3:10: error: lambda must be a number from 0 to 1")

    def test_value_of_no_list(self):
        self.refuse(self.layer('[nodes.advantages]\nwhiten = "batch"\n'),
                    'p.toml:3:10: error: whiten must be one of "none", "iteration"')

    def test_cycle(self):
        self.refuse(self.layer('[nodes.score]\ninputs = ["generate", "rewards"]\n'), "p.toml:3:",
                    "nodes form a loop: score -> rewards -> score")

    def test_the_budget_that_is_named_for_a_barrier_is_the_smallest_that_works(self):
        message = self.refuse(self.layer("[budget]\ntokens_in_flight = 512\n"), "p.toml:3:20: error: 256 tokens in flight of "
                              "source 'prompts' cannot hold one iteration: the run would stall", "'advantages'")
        smallest = int(re.search(r"tokens_in_flight >= (\d+)", message).group(1))
        for tokens, code in ((smallest, 0), (smallest - 1, WRONG_PIPELINE)):
            done = run("validate", PPO, *sets(**{**SMALL, "budget.tokens_in_flight": tokens}))
            self.assertEqual(done.returncode, code, done.stderr)

    def test_the_iteration_that_is_named_for_a_barrier_is_the_largest_that_works(self):
        message = self.refuse(self.layer("[budget]\ntokens_in_flight = 512\n"), "groups_per_iteration <= ")
        largest = int(re.search(r"groups_per_iteration <= (\d+)", message).group(1))
        for groups, code in ((largest, 0), (largest + 1, WRONG_PIPELINE)):
            done = run("validate", PPO,
                       *sets(**{**SMALL, "budget.tokens_in_flight": 512, "nodes.prompts.groups_per_iteration": groups}))
            self.assertEqual(done.returncode, code, done.stderr)

    def test_every_problem_at_once(self):
        self.refuse(self.layer('[pipeline]\nsead = 1\n[budget]\nmicro_batch_tokens = "many"\n[nodes.values]\nmodel = "critics"\n'
                               '[nodes.advantages]\nlambda = 1.5\n'),
                    "p.toml:3:1: error: sead", "did you mean seed?", "p.toml:5:22: error: micro_batch_tokens",
                    "p.toml:7:9: error: 'values'",
                    "p.toml:9:10: error: lambda", problems=4)

    def test_set_errors_are_shown_where_they_are(self):
        done = run("validate", PPO, "--set", "nodes.generate.max_new_token=4", "--set", "nonsense", "--set",
                   "nodes.generate.top_p=2",
                   "--set", 'nodes.generate.top_k="x"', "--set", "nodes.generat.top_k=1", "--set", "pipeline.seed=[1,")
        self.assert_refused(done, "--set:1:16: error: max_new_token is not a parameter", "did you mean max_new_tokens?",
                            '--set:1:1: error: no = in "nonsense"', "--set:1:22: error: top_p must be",
                            "--set:1:22: error: top_k must be",
                            "did you mean", problems=6)

    def test_an_override_wins_over_the_file(self):
        path = self.layer("[nodes.advantages]\nlambda = 1.5\n")
        self.assertEqual(run("validate", path, "--set", "nodes.advantages.lambda=0.5").returncode, 0)

    def test_missing_plugin(self):
        self.refuse(self.layer('[pipeline]\nplugins = ["none.so"]\n'), "p.toml:3:", "none.so")

    def test_no_nodes(self):
        settings = '[pipeline]\nname = "p"\niterations = 1\n[budget]\ntokens_in_flight = 64\nmicro_batch_tokens = 64\n'
        message = self.refuse(settings, "node")
        self.assertTrue(message.startswith(str(self.folder / "p.toml")), message)

    def test_a_name_as_typed_is_shown(self):
        path = self.layer("[pipeline]\nsead = 1\n")
        done = run("validate", pathlib.Path("/") / path.relative_to("/"))
        self.assertTrue(done.stderr.startswith(f"{path}:3:1: error: "), done.stderr)

    def test_nodes_that_compare_samples_of_a_prompt_need_enough_of_them(self):
        cases = [(4, {"nodes.advantages.type": "pass_at_k", "nodes.generate.samples_per_prompt": 3})]
        for kind in ("grpo", "rloo", "opo", "maxrl"):
            alone = {"nodes.advantages.type": kind, "nodes.generate.samples_per_prompt": 1}
            cases += [(2, alone), (1, {**alone, "nodes.advantages.lone_sample": "score"})]
        for least, keys in cases:
            with self.subTest(**keys):
                done = run("validate", PPO.parent / "grpo.toml", *sets(**keys))
                self.assertEqual(done.returncode, DONE if least == 1 else WRONG_PIPELINE, done.stderr)
                if least > 1:
                    made = keys["nodes.generate.samples_per_prompt"]
                    self.assertIn(f"'advantages' compares at least {least} samples of a prompt, and 'generate' makes {made}",
                                  done.stderr)


if __name__ == "__main__":
    unittest.main()
