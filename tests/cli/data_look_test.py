"""What the program says of data before a run: the first rows of each file, all with --data, and chat templates that are not
used."""

import gzip
import json
import shutil
import unittest

from support import DONE, PPO, ROOT, SMALL, Case, run, sets

GOOD = '{"prompt": "1+1=", "label": "2"}\n'
CHAT = ROOT / "pipelines/sft_chat.toml"
GSM8K = ROOT / "pipelines/ppo_gsm8k.toml"
TEXT = ROOT / "pipelines/models/tiny-text"


class Look(Case):
    def data(self, content, name="data.jsonl"):
        return {"nodes.prompts.path": str(self.write(name, content))}

    def test_every_command_that_takes_a_pipeline_finds_a_wrong_field(self):
        wrong = sets(**SMALL, **self.data('{"promt": "1+1=", "label": "2"}\n'))
        for command in (["validate"], ["plan"], ["graph"], ["run", "--run-dir", self.folder / "run"]):
            with self.subTest(command=command):
                done = run(*command, PPO, *wrong)
                self.assert_refused(done, 'data.jsonl:1:1: error: no field "prompt"', 'prompt_field = "promt"?')
        self.assertFalse((self.folder / "run").exists())

    def test_data_without_rows_is_found(self):
        for content in ("", "\n\n", "[]", gzip.compress(b"")):
            with self.subTest(content=content):
                self.assert_refused(run("validate", PPO, *sets(**self.data(content))), "data.jsonl holds no rows")

    def test_a_row_far_in_a_file_is_found_where_all_are_asked_for(self):
        late = sets(**self.data(GOOD * 1000 + '{"prompt": "1+1=", "prompt": "2", "label": "2"}\n'))
        self.assertEqual(run("validate", PPO, *late).returncode, DONE)
        self.assert_refused(run("validate", "--data", PPO, *late), 'data.jsonl:1001:1: error: this line has "prompt" twice')

    def test_characters_that_the_tokenizer_drops_are_warned_of(self):
        data = self.write("some.jsonl", GOOD + '{"prompt": "1é+1=", "label": "2"}\n{"prompt": "1 +\\t1=", "label": "é"}\n'
                          '{"prompt": "ü", "label": "1"}\n')
        words = sets(**SMALL, **{"nodes.prompts.path": str(data)})
        done = run("validate", PPO, *words)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("warning: the tokenizer of model 'actor' has no token for some characters of 2 of 4 rows looked "
                      "at: they are left out\n", done.stderr)
        self.assertIn(f'      = the first one: "é" in {data}:2\n', done.stderr)
        self.assertEqual(done.stderr.count("has no token"), 1)
        known = run("validate", "--data", PPO, *sets(**SMALL, **self.data('{"prompt": "1 +\\t1=", "label": "é"}\n')))
        self.assertEqual((known.returncode, known.stderr), (DONE, ""))

    def test_characters_of_examples_to_learn_are_looked_at_too(self):
        data = self.write("learn.jsonl",
                          '{"prompt": "1+1=", "completion": "2"}\n' * 100 + '{"prompt": "1+1=", "completion": "2é"}\n')
        sft = ROOT / "pipelines/sft.toml"
        for words, told in (((), 0), (("--data",), 1)):
            done = run("validate", *words, sft, *sets(**{"nodes.examples.path": str(data)}))
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertEqual(done.stderr.count("has no token for some characters of 1 of 101 rows: they are left out"), told,
                             done.stderr)
            self.assertEqual(done.stderr.count(f'the first one: "é" in {data}:101'), told)

    def test_a_special_token_with_text_beside_it_ends_nothing_and_is_refused(self):
        self.assertEqual(run("validate", PPO, *sets(**{"nodes.generate.stop": ["<eos>", "<eo"]})).returncode, DONE)
        done = run("validate", PPO, *sets(**{"nodes.generate.stop": ["<eos>", "=<eos>"]}))
        self.assert_refused(done, 'error: "=<eos>" is never found: "<eos>" is a special token, which is no text and is '
                            'found by its name alone')
        steps = self.write("steps.toml", f"""extends = "{PPO}"
            [models.judge]
            checkpoint = "{ROOT}/pipelines/models/tiny-arithmetic"
            head = "value"
            [nodes.steps]
            type = "reward_model"
            inputs = ["generate"]
            model = "judge"
            level = "step"
            separator = "<eos>;"
            """)
        self.assert_refused(run("validate", steps), '"<eos>;" is never found')

    def test_data_that_end_before_the_run_are_warned_of(self):
        words = {**SMALL, **self.data(GOOD * 20), "nodes.prompts.groups_per_iteration": 8, "nodes.prompts.epochs": 2}
        done = run("validate", "--data", PPO, *sets(**{**words, "pipeline.iterations": 9}))
        self.assertIn("warning: the data end after 5 of 9 iterations: schedules and measurements do not come to their end",
                      done.stderr)
        self.assertIn("= 20 rows, 2 epochs, 8 groups an iteration\n", done.stderr)
        for changed in ({"pipeline.iterations": 5}, {"pipeline.iterations": 9, "nodes.prompts.epochs": 0}):
            self.assertEqual(run("validate", "--data", PPO, *sets(**{**words, **changed})).stderr, "")

    def test_a_measurement_that_repeats_some_rows_is_warned_of(self):
        few = {**SMALL, "nodes.held_out.path": str(self.write("few.jsonl", GOOD * 20)), "nodes.held_out.every_iterations": 2}
        done = run("validate", PPO, *sets(**{**few, "nodes.held_out.groups_per_iteration": 50}))
        self.assertIn("warning: a measurement takes 50 of 20 rows: some count oftener than others", done.stderr)
        for changed in ({"nodes.held_out.groups_per_iteration": 40},
                        {"nodes.held_out.groups_per_iteration": 50, "nodes.held_out.epochs": 1}):
            self.assertEqual(run("validate", PPO, *sets(**{**few, **changed})).stderr, "")

    def test_equal_completions_are_warned_of(self):
        pairs = self.write("pairs.jsonl", '{"prompt": "1+1=", "chosen": "2", "rejected": "3"}\n' +
                           '{"prompt": "1+1=", "chosen": "2", "rejected": "2"}\n' * 2)
        done = run("validate", ROOT / "pipelines/dpo.toml", *sets(**{"nodes.pairs.path": str(pairs)}))
        self.assertIn("warning: completions of 2 of 3 rows looked at are the same text: nothing is learned there", done.stderr)
        self.assertIn(f"the first one: {pairs}:2\n", done.stderr)

    def test_limits_are_counted_where_all_rows_are_asked_for(self):
        limit = {"nodes.prompts.model": "actor", "nodes.prompts.max_prompt_tokens": 8}
        long = sets(**self.data(GOOD + '{"prompt": "11111111+1=", "label": "2"}\n'), **limit)
        self.assertEqual(run("validate", PPO, *long).returncode, DONE)
        self.assert_refused(run("validate", "--data", PPO, *long), "data.jsonl:2:1: error: the prompt has 11 tokens")
        done = run("validate", "--data", PPO, *sets(**self.data(GOOD), **limit))
        self.assertEqual((done.returncode, done.stderr), (DONE, ""))
        self.assertIn("every row of the data is as it should be", done.stdout)

    def test_what_the_node_that_samples_would_refuse_is_found_where_all_rows_are_asked_for(self):
        limit = {"nodes.generate.max_prompt_tokens": 8}
        long = sets(**self.data(GOOD + '{"prompt": "11111111+1=", "label": "2"}\n'), **limit)
        self.assertEqual(run("validate", PPO, *long).returncode, DONE)
        self.assert_refused(run("validate", "--data", PPO, *long), "data.jsonl:2:1: error: the prompt has 11 tokens, "
                            "max_prompt_tokens of node 'generate' is 8", "max_prompt_tokens >= 11 in [nodes.generate]")
        left_out = {"nodes.generate.prompt_too_long": "drop"}
        self.assertEqual(run("validate", "--data", PPO, *long, *sets(**left_out)).returncode, DONE)
        empty = sets(**self.data(GOOD + '{"prompt": "", "label": "2"}\n'), **{"nodes.generate.add_special_tokens": "false"})
        self.assert_refused(run("validate", "--data", PPO, *empty), "data.jsonl:2:1: error: the prompt is empty")

    def test_a_run_looks_at_all_prompts_before_it_begins(self):
        late = sets(**self.data(GOOD * 1000 + '{"prompt": "11111111+1=", "label": "2"}\n'),
                    **{"nodes.generate.max_prompt_tokens": 8})
        done = run("run", PPO, "--run-dir", self.folder / "late", *late)
        self.assert_refused(done, "data.jsonl:1001:1: error: the prompt has 11 tokens, max_prompt_tokens of node 'generate' is 8")

    def test_a_label_that_a_scorer_cannot_use_is_found_before_a_run(self):
        blank = sets(**SMALL, **self.data(GOOD + '{"prompt": "1+1=", "label": " "}\n'))
        self.assert_refused(run("validate", PPO, *blank), "data.jsonl:2:1: error: node 'score' cannot use label \" \": it is "
                            "blank, so no response could match it", "help: let the source read reference answers (label_field)")
        number = {"nodes.score.type": "numeric_match"}
        for command in (["validate", "--data"], ["run", "--run-dir", self.folder / "labels"]):
            late = sets(**self.data(GOOD * 1000 + '{"prompt": "1+1=", "label": "many"}\n'), **number)
            self.assert_refused(run(*command, PPO, *late),
                                "data.jsonl:1001:1: error: node 'score' cannot use label \"many\": it holds no number")
        self.assertFalse((self.folder / "labels").exists())

    def test_where_every_row_is_too_long_the_limit_is_named(self):
        limit = {"nodes.prompts.model": "actor", "nodes.prompts.max_prompt_tokens": 8, "nodes.prompts.too_long": "drop"}
        done = run("validate", "--data", PPO, *sets(**self.data('{"prompt": "11111111+1=", "label": "2"}\n'), **limit))
        self.assert_refused(done, "data.jsonl is left: its only row was dropped",
                            "the prompt has 11 tokens, max_prompt_tokens is 8", "help: raise that limit")

    def test_where_the_rollout_would_leave_out_every_prompt_the_shortest_is_named(self):
        dropped = {"nodes.generate.max_prompt_tokens": 2, "nodes.generate.prompt_too_long": "drop"}
        for command in (["validate", "--data"], ["run", "--run-dir", self.folder / "none"]):
            rows = self.data('{"prompt": "11+1=", "label": "12"}\n{"prompt": "1+1=", "label": "2"}\n')
            self.assert_refused(run(*command, PPO, *sets(**rows, **dropped)), "no prompt is left: the shortest has 4 tokens, "
                                "max_prompt_tokens of node 'generate' is 2", "help: max_prompt_tokens >= 4 in [nodes.generate]")
        self.assertFalse((self.folder / "none").exists())

    def test_a_scorer_that_needs_labels_is_refused_where_none_are_read(self):
        done = run("validate", PPO, *sets(**self.data(GOOD), **{"nodes.prompts.label_field": '""'}))
        self.assert_refused(done, "node 'score' reads column 'label', which nothing before it writes")

    def test_a_json_array_is_data_like_its_lines(self):
        rows = [{"prompt": f"{i}+1=", "label": str(i + 1)} for i in range(20)]
        lines = self.run_ppo("lines", **self.data("".join(json.dumps(row) + "\n" for row in rows)))
        array = self.run_ppo("array", **self.data(json.dumps(rows, indent=2), "data.json"))
        self.assertEqual(lines.weights("actor"), array.weights("actor"))

    def test_problems_are_json_too(self):
        done = run("validate", "--format", "json", PPO, *sets(**self.data('{"promt": "a", "label": ""}\n')))
        (problem,) = json.loads(done.stdout)["problems"]
        self.assertEqual((problem["kind"], problem["line"], problem["column"]), ("data-unusable", 1, 1))

    def test_no_weights_are_needed(self):
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            self.write(f"model/{file}", (TEXT / file).read_bytes())
        models = {f"models.{name}.checkpoint": str(self.folder / "model") for name in ("actor", "reference", "critic")}
        done = run("validate", "--data", GSM8K, *sets(**models))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual([done.stderr.count(text) for text in ("warning: ", "holds neither model.safetensors")], [3, 3],
                         done.stderr)


class Templates(Case):
    def own_pipeline(self, prompts):
        """The GSM8K pipeline with a source of which only `prompts` is written."""
        text = GSM8K.read_text().replace("models/", f"{ROOT}/pipelines/models/")
        text = text.replace('path = "data', f'path = "{ROOT}/pipelines/data')
        before, after = text.split('prompt_template = "')
        rest = after.split("[nodes.generate]")[1].replace("add_special_tokens = false", "")
        return self.write("own.toml",
                          f'{before}label_field = "answer"\ngroups_per_iteration = 4\n{prompts}\n[nodes.generate]{rest}')

    def test_raw_text_to_a_model_with_a_template_is_a_warning_with_both_prompts(self):
        pipeline = self.own_pipeline('prompt_field = "question"')
        for command in (["validate"], ["plan"], ["run", "--run-dir", self.folder / "run"]):
            with self.subTest(command=command):
                done = run(*command, pipeline)
                self.assertEqual(done.returncode, DONE, done.stderr)
                for text in ("warning: prompts are sent as they are, without the chat template that model 'actor' has",
                             'as it is now: "A baker makes 12 loaves', 'with chat = true: "user: A baker makes 12 loaves',
                             "<eos>\\nassistant: \"", 'help: chat = true with model = "actor", or chat = false if that is meant'):
                    self.assertIn(text, done.stderr)

    def test_chat_written_out_says_that_raw_text_is_meant(self):
        done = run("validate", self.own_pipeline('prompt_field = "question"\nchat = false'))
        self.assertEqual((done.returncode, done.stderr), (DONE, ""))

    def test_examples_and_pairs_are_warned_of_too(self):
        row = {"prompt": "Hi", "completion": "Ho", "chosen": "Ho", "rejected": "He"}
        data = self.write("data.jsonl", json.dumps(row) + "\n")
        for source, train in (("jsonl_examples", "train_sft"), ("preference_pairs", "train_dpo")):
            with self.subTest(source=source):
                dpo = (f'[models.reference]\ncheckpoint = "{TEXT}"\n[nodes.reference]\ntype = "logprobs"\n'
                       'inputs = ["rows"]\nmodel = "reference"\n')
                trains = ('[nodes.train]\ntype = "train_dpo"\ninputs = ["reference"]\n'
                          if train == "train_dpo" else '[nodes.train]\ntype = "train_sft"\ninputs = ["rows"]\n')
                pipeline = self.write("p.toml", f'''
[pipeline]
iterations = 1
[budget]
tokens_in_flight = 1024
micro_batch_tokens = 512
[models.policy]
checkpoint = "{TEXT}"
optimizer = {{ learning_rate = 1e-4 }}
[nodes.rows]
type = "{source}"
path = "{data}"
model = "policy"
max_tokens = 64
groups_per_iteration = 1
{dpo if train == "train_dpo" else ""}{trains}model = "policy"
''')
                done = run("validate", pipeline)
                self.assertIn("without the chat template that model 'policy' has", done.stderr)
                self.assertIn('with chat = true: "user: Hi<eos>', done.stderr)
                for chat in ("true", "false"):
                    done = run("validate", "--data", pipeline, "--set", f"nodes.rows.chat={chat}")
                    self.assertEqual((done.returncode, done.stderr), (DONE, ""))

    def test_turns_that_end_with_a_token_that_ends_no_sample_are_a_warning(self):
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            self.write(f"model/{file}", (TEXT / file).read_bytes())
        names = ("actor", "reference", "critic")
        models = sets(**{f"models.{name}.checkpoint": str(self.folder / "model") for name in names},
                      **{f"models.{name}.init": "random" for name in names})
        self.write("model/chat_template.jinja", "{% for m in messages %}{{ m.role }}: {{ m.content }}<pad>{% endfor %}")
        done = run("validate", GSM8K, *models)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("warning: the chat template of model 'actor' ends a turn with \"<pad>\" (0), but a sample "
                      "ends with \"<eos>\" (1)", done.stderr)
        self.assertIn('"eos_token_id": [1, 0] in generation_config.json', done.stderr)
        self.assertEqual(run("validate", GSM8K, *models, "--set", "nodes.generate.ignore_end_of_sequence=true").stderr, "")
        self.write("model/generation_config.json", '{"eos_token_id": [1, 0]}')
        self.assertEqual(run("validate", GSM8K, *models).stderr, "")

    def test_a_conversation_where_prompt_and_completion_are_expected_names_the_key_that_reads_it(self):
        data = self.write("share.jsonl",
                          '{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]}\n')
        text = CHAT.read_text().replace("models/", f"{ROOT}/pipelines/models/")
        text = text.replace('messages_field = "messages"', "").replace("data/conversations.jsonl", str(data))
        self.assert_refused(run("validate", self.write("p.toml", text)), 'no field "prompt"', 'no field "completion"',
                            'messages_field = "conversations"?', problems=2)

    def test_chat_without_a_template_is_refused(self):
        done = run("validate", PPO, *sets(**{"nodes.prompts.chat": True, "nodes.prompts.model": "actor",
                                             "nodes.generate.add_special_tokens": False}))
        self.assert_refused(done, "chat needs a chat template, and model 'actor' has none",
                            "chat = false sends the prompts as they are")

    def test_an_image_that_a_template_would_write_a_placeholder_for_is_refused(self):
        model = self.folder / "model"
        shutil.copytree(TEXT, model)
        self.write("model/chat_template.jinja", "{% for m in messages %}{{ m.role }}:{% for part in m.content %}{{ part.text or "
                   "'#' }}{% endfor %};{% endfor %}")
        parts = [{"type": "text", "text": "1+1"}, {"type": "image", "image": "a.png"}]
        for content, told in ((parts,
                               'images.jsonl:1:1: error: message 1 has a part of type "image", and models here read text alone'),
                              (parts[:1], None)):
            data = self.write("images.jsonl",
                              json.dumps({"messages": [{"role": "user", "content": content}], "label": "2"}) + "\n")
            words = {"nodes.prompts.path": str(data), "nodes.prompts.messages_field": "messages", "nodes.prompts.model": "actor",
                     "models.actor.checkpoint": str(model), "nodes.generate.max_prompt_tokens": 20}
            done = run("validate", PPO, *sets(**words))
            self.assertEqual(told in done.stderr if told else "images.jsonl" not in done.stderr, True, done.stderr)

    def test_images_beside_a_text_that_nothing_reads_are_told_once(self):
        told = 'warning: rows have "images", which no prompt would have: models here read text alone'
        rows = [{"prompt": "1+1=", "label": "2", "images": images} for images in ([], None, ["a.png"], ["b.png"])]
        for fields, where in ((rows, "images.jsonl:3\n"), (rows[:2], None),
                              ([{"prompt": "1+1=", "label": "2", "image": "a.png"}], "images.jsonl:1\n")):
            with self.subTest(where=where):
                data = self.write("images.jsonl", "".join(json.dumps(row) + "\n" for row in fields))
                done = run("validate", PPO, *sets(**{"nodes.prompts.path": str(data)}))
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertEqual(done.stderr.count("models here read text alone"), 1 if where else 0, done.stderr)
                if where:
                    self.assertIn(f"the first one: {data.parent}/{where}", done.stderr)
                self.assertEqual(told in done.stderr, fields is rows, done.stderr)
        done = run("validate", PPO, *sets(**{"nodes.prompts.path": str(data), "nodes.prompts.columns": ["image"]}))
        self.assertNotIn("read text alone", done.stderr)

    def test_a_list_of_parts_for_a_template_that_takes_texts_is_refused(self):
        model = self.folder / "model"
        shutil.copytree(TEXT, model)
        words = {"nodes.prompts.path": str(self.folder / "parts.jsonl"), "nodes.prompts.messages_field": "messages",
                 "nodes.prompts.model": "actor", "models.actor.checkpoint": str(model), "nodes.generate.max_prompt_tokens": 40}
        content = [{"type": "text", "text": "1+1"}]
        for written, told in (("m.content | trim",
                               "parts.jsonl:1:1: error: the chat template writes the parts of a message with their brackets"),
                              ("'<' + m.content", "parts.jsonl:1:1: error: "), ("m.content[0].text", None)):
            self.write("model/chat_template.jinja", "{% for m in messages %}{{ " + written + " }};{% endfor %}")
            self.write("parts.jsonl", json.dumps({"messages": [{"role": "user", "content": content}], "label": "2"}) + "\n")
            done = run("validate", PPO, *sets(**words))
            if told is None:
                self.assertNotIn("parts.jsonl", done.stderr)
            else:
                self.assertIn(told, done.stderr)
                self.assertIn("write content as a text: the chat template takes no list of parts", done.stderr)

    def warnings_of_calls(self, arguments, written):
        """What is said of conversations with such arguments of a call, which the template writes like that."""
        model = self.folder / "model"
        shutil.copytree(TEXT, model, dirs_exist_ok=True)
        self.write("model/chat_template.jinja", "{% for m in messages %}{{ m.role }}:{{ m.content }}{% for call in "
                   "m.tool_calls or [] %}{{ call.function.arguments" + written +
                   " }}{% endfor %};{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}")
        rows = ""
        for given in ({"a": 1}, arguments):
            call = {"type": "function", "function": {"name": "add", "arguments": given}}
            rows += (json.dumps({"messages": [{"role": "user", "content": "1+1"},
                                              {"role": "assistant", "content": "", "tool_calls": [call]}]}) + "\n")
        data = self.write("calls.jsonl", rows)
        done = run("validate", CHAT, *sets(**{"models.policy.checkpoint": str(model), "nodes.conversations.path": str(data)}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stderr

    def test_arguments_of_calls_that_would_be_quoted_twice_are_told(self):
        told = "the arguments of tool calls are texts, and the chat template writes them quoted"
        self.assertIn(told, self.warnings_of_calls('{"a": 1}', " | tojson"))
        for arguments, written in (('{"a": 1}', ""), ({"a": 1}, " | tojson"), ("none", " | tojson")):
            self.assertNotIn(told, self.warnings_of_calls(arguments, written))

    def test_an_input_that_no_prompt_would_have_is_told(self):
        rows = [{"instruction": "Go.", "input": "", "label": "1"}, {"instruction": "Add.", "input": "1+1", "label": "2"}]
        data = sets(**SMALL, **{"nodes.prompts.path": str(self.write("alpaca.json", json.dumps(rows)))})
        done = run("validate", PPO, *data, "--set", "nodes.prompts.prompt_field=instruction")
        self.assertEqual(done.returncode, DONE)
        self.assertIn('warning: rows have an "input" beside their "instruction"', done.stderr)
        self.assertIn('the first one: "1+1"', done.stderr)
        both = run("validate", PPO, *data, "--set", 'nodes.prompts.prompt_fields=["instruction", "input"]')
        self.assertEqual((both.returncode, both.stderr), (DONE, ""))

    def test_alpaca_and_sharegpt_are_trained_on(self):
        alpaca = self.write("alpaca.json", json.dumps([{"instruction": "Add.", "input": "1+1", "output": "2"},
                                                       {"instruction": "Hi", "input": "", "output": "Ho"}]))
        talk = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]
        share = self.write("share.jsonl", json.dumps({"conversations": talk, "system": "Be kind."}) + "\n")
        source = {"nodes.conversations.groups_per_iteration": 2, "pipeline.iterations": 1}
        (self.folder / "runs").mkdir()
        text = CHAT.read_text().replace("models/", f"{ROOT}/pipelines/models/")
        text = text.replace('messages_field = "messages"', "KEYS").replace("data/conversations.jsonl", "DATA")
        for data, keys in ((alpaca, 'prompt_fields = ["instruction", "input"]\ncompletion_field = "output"\nchat = true'),
                           (share, 'messages_field = "conversations"\nsystem_field = "system"')):
            with self.subTest(data=data.name):
                pipeline = self.write("p.toml", text.replace("KEYS", keys).replace("DATA", str(data)))
                done = run("run", pipeline, "--run-dir", self.folder / "runs" / data.stem, *sets(**source))
                self.assertEqual((done.returncode, done.stderr), (DONE, ""))


if __name__ == "__main__":
    unittest.main()
