package cli

import (
	"context"
	"fmt"
	"strings"
)

func completionCommand() *command {
	shells := map[string]func() string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}
	return &command{
		name:      "completion",
		summary:   "print a completion script for a shell",
		arguments: "bash|zsh|fish",
		examples: []example{
			{"source <(utr completion bash)", "in ~/.bashrc"},
			{"utr completion zsh > \"${fpath[1]}/_utr\"", "once, for zsh"},
			{"utr completion fish > ~/.config/fish/completions/utr.fish", "once, for fish"},
		},
		words: func() []string { return []string{"bash", "zsh", "fish"} },
		declare: func(*flags) action {
			return func(_ context.Context, c *call) error {
				if len(c.paths) != 1 || shells[c.paths[0]] == nil {
					return usage("completion: name a shell: bash, zsh or fish")
				}
				return c.print(shells[c.paths[0]]())
			}
		},
	}
}

// takesFile reports whether a flag's value is a file.
func (r flagRow) takesFile() bool { return r.value == "FILE" }

// takesPaths reports whether a command's arguments are files.
func (c *command) takesPaths() bool {
	return strings.HasPrefix(c.arguments, "PATH") || strings.HasPrefix(c.arguments, "FILE")
}

func (c *command) wordList() string {
	if c.words == nil {
		return ""
	}
	return strings.Join(c.words(), " ")
}

// long spells a flag with its dashes.
func (r flagRow) long() string { return strings.Fields(r.spelling())[0] }

func bashCompletion() string {
	var b strings.Builder
	b.WriteString(`# bash completion for utr
_utr() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "` + strings.Join(names(), " ") + `" -- "$cur"))
        return
    fi
    case "${COMP_WORDS[1]} $prev" in
`)
	for _, c := range commands() {
		for _, r := range c.rows() {
			switch {
			case len(r.choices) > 0:
				fmt.Fprintf(&b, "        \"%s %s\") COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", c.name, r.long(), strings.Join(r.choices, " "))
			case r.takesFile():
				fmt.Fprintf(&b, "        \"%s %s\") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", c.name, r.long())
			}
		}
	}
	b.WriteString("    esac\n    case \"${COMP_WORDS[1]}\" in\n")
	for _, c := range commands() {
		var all []string
		for _, r := range c.rows() {
			all = append(all, r.long())
		}
		fmt.Fprintf(&b, "        %s) words=\"%s\" ;;\n", c.name, strings.TrimSpace(strings.Join(all, " ")+" "+c.wordList()))
	}
	b.WriteString(`    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    case "${COMP_WORDS[1]}" in
`)
	for _, c := range commands() {
		if c.takesPaths() {
			fmt.Fprintf(&b, "        %s) COMPREPLY+=($(compgen -f -- \"$cur\")) ;;\n", c.name)
		}
	}
	b.WriteString("    esac\n}\ncomplete -o filenames -F _utr utr\n")
	return b.String()
}

// zshQuote makes a text fit inside single quotes of a zsh completion spec.
func zshQuote(s string) string {
	return strings.NewReplacer("'", `'\''`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}

func zshCompletion() string {
	var b strings.Builder
	b.WriteString("#compdef utr\n# zsh completion for utr\n_utr() {\n    local -a commands\n    commands=(\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "        '%s:%s'\n", c.name, zshQuote(c.summary))
	}
	b.WriteString("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n    local command=${words[2]}\n    shift words\n    (( CURRENT-- ))\n    case $command in\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "        %s)\n            _arguments", c.name)
		for _, r := range c.rows() {
			fmt.Fprintf(&b, " \\\n                '*%s[%s]", r.long(), zshQuote(r.summary))
			switch {
			case len(r.choices) > 0:
				fmt.Fprintf(&b, ":value:(%s)", strings.Join(r.choices, " "))
			case r.takesFile():
				b.WriteString(":file:_files")
			case r.value != "" && !strings.HasPrefix(r.value, "["):
				b.WriteString(":value:")
			}
			b.WriteString("'")
		}
		switch {
		case c.takesPaths():
			fmt.Fprintf(&b, " \\\n                '*:path:{ _files; compadd %s }'", c.wordList())
		case c.words != nil:
			fmt.Fprintf(&b, " \\\n                '*:argument:(%s)'", c.wordList())
		}
		b.WriteString("\n            ;;\n")
	}
	b.WriteString("    esac\n}\nif [ \"$funcstack[1]\" = _utr ]; then\n    _utr \"$@\"\nelse\n    compdef _utr utr\nfi\n")
	return b.String()
}

func fishCompletion() string {
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" }
	var b strings.Builder
	b.WriteString("# fish completion for utr\ncomplete -c utr -f\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "complete -c utr -n __fish_use_subcommand -a %s -d %s\n", c.name, quote(c.summary))
	}
	for _, c := range commands() {
		when := fmt.Sprintf("complete -c utr -n '__fish_seen_subcommand_from %s'", c.name)
		for _, r := range c.rows() {
			b.WriteString(when)
			if len(r.name) == 1 {
				b.WriteString(" -s " + r.name)
			} else {
				b.WriteString(" -l " + r.name)
			}
			switch {
			case len(r.choices) > 0:
				b.WriteString(" -x -a " + quote(strings.Join(r.choices, " ")))
			case r.takesFile():
				b.WriteString(" -r -F")
			case r.value != "" && !strings.HasPrefix(r.value, "["):
				b.WriteString(" -x")
			}
			b.WriteString(" -d " + quote(r.summary) + "\n")
		}
		if words := c.wordList(); words != "" {
			b.WriteString(when + " -a " + quote(words) + "\n")
		}
		if c.takesPaths() {
			b.WriteString(when + " -F\n")
		}
	}
	return b.String()
}
