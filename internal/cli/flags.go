package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
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

// file is a file that the command writes or reads. A list of forbidden endings
// keeps it from being taken for a suite.
func (f *flags) file(name, summary string, forbidden ...string) *string {
	v := fileFlag{forbidden: forbidden}
	f.add(&v, name, "FILE", summary)
	return &v.value
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
	return f.within(name, value, initial, least, math.MaxInt, summary)
}

func (f *flags) within(name, value string, initial, least, most int, summary string) *int {
	n := numberFlag{initial, least, most}
	f.add(&n, name, value, summary)
	return &n.value
}

func (f *flags) duration(name, summary string) *time.Duration {
	var d durationFlag
	f.add(&d, name, "DURATION", summary)
	return &d.value
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
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--":
			return append(paths, args...), nil
		case word == "-" || !strings.HasPrefix(word, "-"):
			paths = append(paths, word)
			continue
		}
		if args, err = f.read(word, args); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// read reads one flag, and gives what follows it and its value.
func (f *flags) read(word string, rest []string) ([]string, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
	name, value, given := strings.Cut(name, "=")
	if name == "h" || name == "help" {
		return nil, errHelp
	}
	known := f.set.Lookup(name)
	if known == nil {
		return nil, f.unknown(name)
	}
	spelled := flagRow{name: name}.spelling()
	if !given {
		isSwitch, ok := known.Value.(interface{ IsBoolFlag() bool })
		switch {
		case ok && isSwitch.IsBoolFlag():
			value = "true"
			if seed, optional := known.Value.(*seedFlag); optional && len(rest) > 0 && seed.takes(rest[0]) {
				value, rest = rest[0], rest[1:]
			}
		case len(rest) == 0:
			return nil, fmt.Errorf("%s needs a value", spelled)
		default:
			value, rest = rest[0], rest[1:]
		}
	}
	if err := f.set.Set(name, value); err != nil {
		return nil, fmt.Errorf("%s %q: %w", spelled, value, err)
	}
	return rest, nil
}

// unknown is the error for a flag that there is not, with the one that was
// meant if that can be told.
func (f *flags) unknown(name string) error {
	var names []string
	for _, r := range f.declared {
		names = append(names, r.name)
	}
	err := fmt.Errorf("there is no flag %s", flagRow{name: name}.spelling())
	if meant := nearest(name, names); meant != "" {
		return fmt.Errorf("%w; did you mean %s?", err, flagRow{name: meant}.spelling())
	}
	return err
}

// fileFlag is the name of a file.
type fileFlag struct {
	value     string
	forbidden []string
}

func (f *fileFlag) String() string { return f.value }

func (f *fileFlag) Set(s string) error {
	switch {
	case s == "":
		return errors.New("it needs the name of a file")
	case s == "-":
		return errors.New("it needs the name of a file, and - is none")
	case contains(f.forbidden, strings.ToLower(filepath.Ext(s))):
		return errors.New("it would be written over, and its name is that of a suite")
	}
	f.value = s
	return nil
}

// durationFlag is a length of time that is not over at once.
type durationFlag struct{ value time.Duration }

func (d *durationFlag) String() string { return d.value.String() }

func (d *durationFlag) Set(s string) error {
	v, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return errors.New("it must be a length of time such as 30s, 1m30s or 500ms")
	case v <= 0:
		return errors.New("it must be longer than nothing")
	}
	d.value = v
	return nil
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

// numberFlag is an integer between two others.
type numberFlag struct{ value, least, most int }

func (n *numberFlag) String() string { return strconv.Itoa(n.value) }

func (n *numberFlag) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("it must be a number")
	}
	if v < n.least {
		return fmt.Errorf("it must be at least %d", n.least)
	}
	if v > n.most {
		return fmt.Errorf("it must be at most %d", n.most)
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

// parametersFlag collects server parameters as NAME=VALUE. A value is a
// switch, a number or a document if it reads as one, else a text.
type parametersFlag bson.D

func (p *parametersFlag) String() string { return "" }

func (p *parametersFlag) Set(s string) error {
	name, text, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return errors.New("it must be NAME=VALUE")
	}
	var doc bson.D
	value := any(text)
	if bson.UnmarshalExtJSON([]byte(`{"value": `+text+`}`), false, &doc) == nil && len(doc) == 1 {
		value = doc[0].Value
	}
	*p = append(*p, bson.E{Key: name, Value: value})
	return nil
}

// seedFlag is a seed that may be left out: then chance gives one.
type seedFlag struct{ seed *int64 }

func (s *seedFlag) String() string   { return "" }
func (s *seedFlag) IsBoolFlag() bool { return true }

// takes reports whether a word is a seed: it may be left out.
func (s *seedFlag) takes(word string) bool {
	_, err := strconv.ParseInt(word, 10, 64)
	return err == nil
}

func (s *seedFlag) Set(text string) error {
	if text == "true" { // a bare --shuffle
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
