package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
)

// flags is a flag set that lets flags follow paths, and remembers in which
// order flags were declared and what their values are called.
type flags struct {
	set      *flag.FlagSet
	declared []flagRow
}

// flagRow is a flag as usage and docs show it.
type flagRow struct {
	name    string
	value   string // what its value is called; "" for a switch
	summary string
	choices []string // for completion
}

var errHelp = errors.New("help is wanted")

func newFlags() *flags {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	return &flags{set: set}
}

// add declares a flag; several names may share a row in the usage.
func (f *flags) add(v flag.Value, name, value, summary string, choices ...string) {
	f.set.Var(v, name, summary)
	f.declared = append(f.declared, flagRow{name, value, summary, choices})
}

func (f *flags) text(name, value, initial, summary string) *string {
	s := textFlag{initial, nil}
	f.add(&s, name, value, summary)
	return &s.value
}

func (f *flags) choice(name, initial, summary string, choices ...string) *string {
	s := textFlag{initial, choices}
	f.add(&s, name, strings.Join(choices, "|"), summary, choices...)
	return &s.value
}

func (f *flags) toggle(name, summary string) *bool {
	b := f.set.Bool(name, false, summary)
	f.declared = append(f.declared, flagRow{name: name, summary: summary})
	return b
}

func (f *flags) number(name, value string, initial, least int, summary string) *int {
	n := numberFlag{initial, least}
	f.add(&n, name, value, summary)
	return &n.value
}

func (f *flags) patterns(name, summary string) *patternsFlag {
	var p patternsFlag
	f.add(&p, name, "REGEXP", summary)
	return &p
}

// given reports whether a flag was on the command line.
func (f *flags) given(name string) bool {
	found := false
	f.set.Visit(func(g *flag.Flag) { found = found || g.Name == name })
	return found
}

// parse reads flags wherever they stand; what follows -- is no flag. A single
// - is no flag either: it is standard input.
func (f *flags) parse(args []string) (paths []string, err error) {
	args = joinOptional(args)
	for {
		if err := f.set.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, errHelp
			}
			return nil, err
		}
		rest := f.set.Args()
		if len(rest) == 0 {
			return paths, nil
		}
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
			return append(paths, rest...), nil
		}
		paths, args = append(paths, rest[0]), rest[1:]
	}
}

// joinOptional ties a number to --shuffle, whose value may be left out.
func joinOptional(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(out, args[i:]...)
		}
		if (args[i] == "--shuffle" || args[i] == "-shuffle") && i+1 < len(args) {
			if _, err := strconv.ParseInt(args[i+1], 10, 64); err == nil {
				out = append(out, args[i]+"="+args[i+1])
				i++
				continue
			}
		}
		out = append(out, args[i])
	}
	return out
}

// textFlag is a string, or one of a few.
type textFlag struct {
	value   string
	choices []string
}

func (t *textFlag) String() string { return t.value }

func (t *textFlag) Set(s string) error {
	if t.choices != nil && !contains(t.choices, s) {
		return fmt.Errorf("it must be one of %s", strings.Join(t.choices, ", "))
	}
	t.value = s
	return nil
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// numberFlag is an integer with a least value.
type numberFlag struct{ value, least int }

func (n *numberFlag) String() string { return strconv.Itoa(n.value) }

func (n *numberFlag) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("it must be a number")
	}
	if v < n.least {
		return fmt.Errorf("it must be at least %d", n.least)
	}
	n.value = v
	return nil
}

// patternsFlag collects regular expressions.
type patternsFlag []*regexp.Regexp

func (p *patternsFlag) String() string { return "" }

func (p *patternsFlag) Set(s string) error {
	r, err := regexp.Compile(s)
	if err != nil {
		return err
	}
	*p = append(*p, r)
	return nil
}

// listFlag collects texts.
type listFlag []string

func (l *listFlag) String() string     { return "" }
func (l *listFlag) Set(s string) error { *l = append(*l, s); return nil }

// seedFlag is a seed that may be left out: then chance gives one.
type seedFlag struct{ seed *int64 }

func (s *seedFlag) String() string   { return "" }
func (s *seedFlag) IsBoolFlag() bool { return true }

func (s *seedFlag) Set(text string) error {
	if text == "true" { // what package flag says for a bare --shuffle
		seed := rand.Int64N(1_000_000)
		s.seed = &seed
		return nil
	}
	seed, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errors.New("it must be a number")
	}
	s.seed = &seed
	return nil
}
