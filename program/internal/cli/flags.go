package cli

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/runner"
)

// flags declares the flags of a command. Help shows them in groups, in the order of their declaration.
type flags struct {
	*pflag.FlagSet
	inv     *invocation
	command *cobra.Command
	group   string // of the flags declared next
	// complete are functions that complete flags whose values depend on others, or take a moment to find.
	complete map[string]func() []string
	checks   []func() error // of the values, when the command line has been read
}

func newFlags(c *invocation, command *cobra.Command) *flags {
	f := &flags{FlagSet: command.Flags(), inv: c, command: command}
	f.complete = map[string]func() []string{"engine": c.completeEngines} // they depend on --engines
	f.SortFlags = false
	return f
}

const groupOf = "group"

// value implements pflag.Value for a variable.
type value[T any] struct {
	to   *T
	name string // in help
	read func(string) (T, error)
}

// String returns "" for a zero value, so that pflag shows no default.
func (v value[T]) String() string {
	if of := reflect.ValueOf(v.to).Elem(); of.IsZero() && of.Kind() != reflect.Bool {
		return ""
	}
	return fmt.Sprint(*v.to)
}

func (v value[T]) Type() string { return v.name }

func (v value[T]) Set(s string) (err error) {
	read, err := v.read(s)
	if err == nil {
		*v.to = read
	}
	return err
}

// args returns the arguments that set the flag to its current value.
func (v value[T]) args(flag string) (args []string) {
	of := reflect.ValueOf(v.to).Elem()
	switch {
	case of.IsZero():
	case of.Kind() == reflect.Bool:
		return []string{flag}
	case of.Kind() == reflect.Slice:
		for _, one := range of.Seq2() {
			args = append(args, flag, fmt.Sprint(one))
		}
	default:
		return []string{flag, v.String()}
	}
	return args
}

// args returns the arguments that set these flags as on the command line.
func (f *flags) args(names ...string) (args []string) {
	for _, name := range names {
		if flag := f.Lookup(name); flag.Changed {
			args = append(args, flag.Value.(interface{ args(string) []string }).args("--"+name)...)
		}
	}
	return args
}

// set declares a flag for a variable. Shells complete choices, or a file name if the placeholder says so. The error of
// read also has the choice that the value most likely means.
func set[T any](f *flags, to *T, name, placeholder, summary string, read func(string) (T, error),
	choices ...string) *pflag.Flag {
	suggesting := func(s string) (T, error) {
		read, err := read(s)
		if err != nil {
			word, _, _ := strings.Cut(s, ",") // a choice, with more after it
			err = fmt.Errorf("%w%s", err, suggest.Hint(word, choices))
		}
		return read, err
	}
	flag := f.VarPF(value[T]{to, placeholder, suggesting}, name,
		map[string]string{"verbose": "v", "quiet": "q", "jobs": "j"}[name], summary)
	flag.Annotations = map[string][]string{groupOf: {f.group}}
	if len(choices) > 0 || !strings.Contains(placeholder, "FILE") && !strings.Contains(placeholder, "DIR") {
		// The error is for unknown flags and repeated registration.
		_ = f.command.RegisterFlagCompletionFunc(name, completes(func() []string {
			if find := f.complete[name]; find != nil {
				return find()
			}
			return choices
		}, cobra.ShellCompDirectiveNoFileComp))
	}
	return flag
}

func list[T any](f *flags, to *[]T, name, placeholder, summary string, read func(string) (T, error),
	choices ...string) {
	set(f, to, name, placeholder, summary+"; may be repeated", func(s string) ([]T, error) {
		next, err := read(s)
		return append(*to, next), err
	}, choices...)
}

func choice[T ~string](f *flags, to *T, name, placeholder, summary string, choices ...string) {
	listed := summary
	if len(choices) > 1 {
		listed += ": " + strings.Join(choices, ", ")
	}
	set(f, to, name, placeholder, listed, oneOf[T](choices), choices...)
}

func oneOf[T ~string](choices []string) func(string) (T, error) {
	return func(s string) (T, error) {
		if !slices.Contains(choices, s) {
			return T(s), fmt.Errorf("must be one of %s", strings.Join(choices, ", "))
		}
		return T(s), nil
	}
}

// orDefault reads a value that is "" for the default.
func orDefault[T ~string](read func(string) (T, error)) func(string) (T, error) {
	return func(s string) (T, error) {
		if s == "" {
			return "", nil
		}
		return read(s)
	}
}

// unknown returns the error of an argument that is not one of these words.
func unknown(what, argument string, words []string) error {
	return usage("unknown %s %q: it must be one of %s%s", what, argument, strings.Join(words, ", "),
		suggest.Hint(argument, words))
}

func anyText(s string) (string, error) { return s, nil }

func (f *flags) text(to *string, name, placeholder, summary string, choices ...string) {
	set(f, to, name, placeholder, summary, anyText, choices...)
}

func (f *flags) texts(to *[]string, name, placeholder, summary string, choices ...string) {
	list(f, to, name, placeholder, summary, anyText, choices...)
}

func (f *flags) patterns(to *[]*regexp.Regexp, name, summary string) {
	list(f, to, name, "REGEXP", summary, runner.Pattern)
}

// file declares a flag that names a file. Forbidden extensions keep a report from overwriting a suite.
func (f *flags) file(to *string, name, summary string, forbidden ...string) {
	set(f, to, name, "FILE", summary, func(s string) (string, error) { return fileName(s, forbidden...) })
}

func fileName(s string, forbidden ...string) (string, error) {
	switch {
	case s == "" || s == "-":
		return s, errors.New("must be the name of a file")
	case slices.Contains(forbidden, strings.ToLower(filepath.Ext(s))):
		return s, errors.New("a report with this name would overwrite a suite")
	}
	return s, nil
}

func (f *flags) toggle(to *bool, name, summary string) {
	set(f, to, name, "bool", summary, func(s string) (bool, error) {
		on, err := strconv.ParseBool(s)
		if err != nil {
			err = errors.New("must be true or false")
		}
		return on, err
	}).NoOptDefVal = "true"
}

func (f *flags) number(to *int, name, placeholder string, least int, summary string) {
	f.within(to, name, placeholder, least, math.MaxInt, summary)
}

func (f *flags) within(to *int, name, placeholder string, least, most int, summary string) {
	set(f, to, name, placeholder, summary, func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		switch {
		case err != nil:
			return n, errNumber
		case n < least:
			return n, fmt.Errorf("must be at least %d", least)
		case n > most:
			return n, fmt.Errorf("must be at most %d", most)
		}
		return n, nil
	})
}

var errNumber = errors.New("must be a number")

func (f *flags) duration(to *time.Duration, name, summary string) {
	set(f, to, name, "DURATION", summary, func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return d, errors.New("must be a duration such as 30s, 1m30s or 500ms")
		case d <= 0:
			return d, errors.New("must be positive")
		}
		return d, nil
	})
}

func nameAndValue(s string) (name, value string, err error) {
	name, value, found := strings.Cut(s, "=")
	if !found || name == "" {
		return "", "", errors.New("must be NAME=VALUE")
	}
	return name, value, nil
}

// serverParameter parses NAME=VALUE. The value is Extended JSON, or else a string.
func serverParameter(s string) (bson.E, error) {
	name, text, err := nameAndValue(s)
	var doc bson.D
	if err == nil && bson.UnmarshalExtJSON([]byte(`{"value": `+text+`}`), false, &doc) == nil && len(doc) == 1 {
		return bson.E{Key: name, Value: doc[0].Value}, nil
	}
	return bson.E{Key: name, Value: text}, err
}

// randomSeed is the value of a seed flag without a value.
const randomSeed = "random"

// seed declares a flag for a seed. The seed is random if the flag has no value. Nil means that the flag is absent.
func (f *flags) seed(to **int64, name, summary string) {
	set(f, to, name, "SEED", summary, func(s string) (*int64, error) {
		seed, err := strconv.ParseInt(s, 10, 64)
		switch {
		case s == randomSeed:
			seed = rand.Int64N(1_000_000)
		case err != nil:
			return nil, errNumber
		}
		return &seed, nil
	}).NoOptDefVal = randomSeed
}

// shuffle is the flag whose value is optional. pflag reads an optional value only after "=".
const shuffle = "--shuffle"

// joinSeeds changes "--shuffle 7" to "--shuffle=7".
func joinSeeds(args []string) []string {
	var joined []string
	for i, arg := range args {
		if _, err := strconv.ParseInt(arg, 10, 64); err == nil && i > 0 && args[i-1] == shuffle {
			joined[len(joined)-1] += "=" + arg
			continue
		}
		if arg == "--" {
			return append(joined, args[i:]...)
		}
		joined = append(joined, arg)
	}
	return joined
}
