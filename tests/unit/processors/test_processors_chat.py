# SPDX-License-Identifier: Apache-2.0
"""Chat templates: the text of messages as a model learned it, and templates of strangers."""

import json
import sys

import pytest

from nndeploy.errors import DataError, InputError, UnavailableError

sandbox = pytest.importorskip("jinja2.sandbox", reason="the extra text is not installed")

TEMPLATE = """{{ bos_token }}{% for m in messages %}
{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}
<{{ m.role }}>{{ m.content | trim }}{{ eos_token }}
{% endfor %}
{% if add_generation_prompt %}<assistant>{% endif %}"""
HELLO = [{"role": "user", "content": " hello "}]


@pytest.fixture
def chat(step, tmp_path):
    def make(template=TEMPLATE, *, system="", **config):
        given = {"chat_template": template, "bos_token": "<s>", "eos_token": {"content": "</s>"}, **config}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(given))
        return step("chat", template="tokenizer_config.json", system=system)

    return make


def test_messages_are_written_as_the_template_says(chat) -> None:
    assert chat()({"messages": HELLO})["text"] == "<s><user>hello</s>\n<assistant>"
    assert chat()({"messages": "hello"})["text"] == "<s><user>hello</s>\n<assistant>"
    with_system = chat(system="be brief")
    assert with_system({"messages": HELLO})["text"] == "<s><system>be brief</s>\n<user>hello</s>\n<assistant>"
    given = [{"role": "system", "content": "x"}, *HELLO]
    assert with_system({"messages": given})["text"] == chat()({"messages": given})["text"]
    named = chat([{"name": "tools", "template": "no"}, {"name": "default", "template": "{{ messages[0].role }}"}])
    assert named({"messages": HELLO})["text"] == "user"


def test_a_file_of_jinja_is_a_template_too(step, tmp_path) -> None:
    (tmp_path / "chat_template.jinja").write_text("{{ messages | tojson }}")
    found = step("chat", template="chat_template.jinja")({"messages": [{"role": "user", "content": "<ü>"}]})["text"]
    assert found == '[{"role": "user", "content": "<ü>"}]'


def test_a_template_beside_the_special_tokens_is_found(step, tmp_path) -> None:
    (tmp_path / "tokenizer_config.json").write_text('{"bos_token": "<s>"}')
    with pytest.raises(DataError, match=r"chat_template\.jinja"):
        step("chat", template="tokenizer_config.json")
    (tmp_path / "chat_template.jinja").write_text("{{ bos_token }}{{ messages[0].content }}")
    assert step("chat", template="tokenizer_config.json")({"messages": HELLO})["text"] == "<s> hello "


@pytest.mark.parametrize("messages", [[], [{}], [{"role": "user"}], 3, None, [*HELLO, {"role": "tool", "content": ""}]])
def test_what_are_no_messages_or_are_refused_by_the_template_is_one_line(chat, messages) -> None:
    with pytest.raises(InputError):
        chat()({"messages": messages})


@pytest.mark.parametrize("template", [
    "{{ messages.__class__.__mro__ }}", "{{ ''.__class__ }}", "{{ messages.append(1) }}",
    "{{ cycler.__init__.__globals__.os }}", "{{ range(10 ** 9) | list }}",
    "{% for i in range(99999) %}{{ 'x' * 999 }}{% endfor %}", "{{ 1 / 0 }}", "{% include 'x' %}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
])  # fmt: skip
def test_a_template_reaches_nothing_outside_and_ends(chat, template) -> None:
    with pytest.raises(InputError):
        chat(template + "{{ messages and raise_exception('an undefined value is not written') }}")({"messages": HELLO})


DOUBLED = ("{% set x = x ~ x %}", "{% set x = x + x %}", "{% set x %}{{ x }}{{ x }}{% endset %}", "{% set x = f(x) %}")


@pytest.mark.parametrize("template", [
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(9) recursive %}{{ loop(range(9)) if loop.depth < 9 }}{% endfor %}",
    "{% macro f(n) %}{{ f(n - 1) ~ f(n - 1) if n }}{% endmacro %}{{ f(40) }}",
    "{{ 2 ** (2 ** 40) }}", "{{ [0] * 2 ** 40 }}",
    *("{% macro f(x) %}{{ x }}{{ x }}{% endmacro %}{% set x = 'x' %}" + 40 * one for one in DOUBLED),
])  # fmt: skip
def test_what_a_template_computes_ends(chat, template) -> None:
    with pytest.raises(InputError, match="template"):
        chat(template + "{{ messages }}")({"messages": HELLO})


def test_within_the_bounds_a_template_writes_what_jinja_writes(chat) -> None:
    template = """{% set of = namespace(n=0) %}{% macro tag(x) %}<{{ x }}>{% endmacro %}
    {% for m in messages + messages %}{% set of.n = of.n + loop.index * 2 ** loop.index0 %}
    {{ tag(m.role) ~ loop.last ~ loop.length ~ loop.previtem is defined }}{% else %}none{% endfor %}
    {% for one in [1, [2, [3]]] recursive %}{{ loop(one) if one is iterable else one }},{% endfor %}
    {% for one in nothing %}{% else %}{% set x %}{{ of.n }}{% endset %}{{ x }}{% endfor %}
    {% for i in range(9) if i % 2 %}{% if i > 5 %}{% break %}{% endif %}{{ i }}{% endfor %}"""
    plain = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    wanted = plain.from_string(template).render(messages=HELLO)
    assert "<user>" in wanted
    assert chat(template)({"messages": HELLO})["text"] == wanted


@pytest.mark.parametrize("template", ["{% if %}", "{{ x", None, 3, "You are a poet.", "{{ message.content }}"])
def test_what_is_no_template_is_refused_before_anything_runs(chat, template) -> None:
    with pytest.raises(DataError, match=r"p\.toml: chat: template: tokenizer_config\.json"):
        chat(template)


def test_without_jinja_one_line_names_the_extra(chat, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UnavailableError, match=r"nndeploy-toolchain\[text\]"):
        chat()
