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
)

// flags declares the flags of a command. Help shows them in the order in which
// they are declared, in groups.
type flags struct {
	*pflag.FlagSet
	call    *call
	command *cobra.Command
	group   string // of the flags that are declared next
}

func newFlags(c *call, command *cobra.Command) *flags {
	f := &flags{FlagSet: command.Flags(), call: c, command: command}
	f.SortFlags = false
	return f
}

// groupOf is the annotation of a flag that names its group.
const groupOf = "group"

// add declares a flag. Shells complete its value: choices if there are any, else
// the name of a file if the value is one.
func (f *flags) add(v pflag.Value, name, summary string, choices ...string) *pflag.Flag {
	long, short := name, ""
	if name == "verbose" {
		short = "v"
	}
	added := f.VarPF(v, long, short, summary)
	added.Annotations = map[string][]string{groupOf: {f.group}}
	if len(choices) > 0 || !strings.Contains(v.Type(), "FILE") && !strings.Contains(v.Type(), "DIR") {
		// It fails only for a flag that is unknown or has choices already.
		_ = f.command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
	}
	return added
}

// value is the value of a flag.
type value[T any] struct {
	to   *T
	name string // in help
	read func(string) (T, error)
}

func newValue[T any](initial T, name string, read func(string) (T, error)) value[T] {
	return value[T]{&initial, name, read}
}

// String is "" for a zero value, which pflag does not show as a default.
func (v value[T]) String() string {
	if v.to == nil {
		return ""
	}
	if of := reflect.ValueOf(v.to).Elem(); of.IsZero() && of.Kind() != reflect.Bool {
		return ""
	}
	return fmt.Sprint(*v.to)
}

func (v value[T]) Type() string { return v.name }

// again gives the arguments that set the flag to its value.
func (v value[T]) again(flag string) (args []string) {
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

func (v value[T]) Set(s string) (err error) {
	read, err := v.read(s)
	if err == nil {
		*v.to = read
	}
	return err
}

// again gives the arguments that set flags as the command line did.
func (f *flags) again(names ...string) (args []string) {
	for _, name := range names {
		if flag := f.Lookup(name); flag.Changed {
			args = append(args, flag.Value.(interface{ again(string) []string }).again("--"+name)...)
		}
	}
	return args
}

func (f *flags) text(name, value, initial, summary string, choices ...string) *string {
	v := newValue(initial, value, func(s string) (string, error) { return s, nil })
	f.add(v, name, summary, choices...)
	return v.to
}

// file is a file that the command writes or reads. A list of forbidden endings
// keeps it from being taken for a suite.
func (f *flags) file(name, summary string, forbidden ...string) *string {
	v := newValue("", "FILE", func(s string) (string, error) {
		switch {
		case s == "" || s == "-":
			return s, errors.New("must be the name of a file")
		case slices.Contains(forbidden, strings.ToLower(filepath.Ext(s))):
			return s, errors.New("the report would overwrite a suite, going by its name")
		}
		return s, nil
	})
	f.add(v, name, summary)
	return v.to
}

// choice is one of a few words, which help lists.
func (f *flags) choice(name, value, initial, summary string, choices ...string) *string {
	v := newValue(initial, value, func(s string) (string, error) {
		if !slices.Contains(choices, s) {
			return s, fmt.Errorf("must be one of %s", strings.Join(choices, ", "))
		}
		return s, nil
	})
	if len(choices) > 1 {
		summary += ": " + strings.Join(choices, ", ")
	}
	f.add(v, name, summary, choices...)
	return v.to
}

func (f *flags) toggle(name, summary string) *bool {
	v := newValue(false, "bool", func(s string) (bool, error) {
		on, err := strconv.ParseBool(s)
		if err != nil {
			err = errors.New("must be true or false")
		}
		return on, err
	})
	f.add(v, name, summary).NoOptDefVal = "true"
	return v.to
}

func (f *flags) number(name, value string, initial, least int, summary string) *int {
	return f.within(name, value, initial, least, math.MaxInt, summary)
}

// within is an integer between two others.
func (f *flags) within(name, value string, initial, least, most int, summary string) *int {
	v := newValue(initial, value, func(s string) (int, error) {
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
	f.add(v, name, summary)
	return v.to
}

var errNumber = errors.New("must be a number")

// duration is a length of time; zero means that the flag is absent.
func (f *flags) duration(name, summary string) *time.Duration {
	v := newValue(0, "DURATION", func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return d, errors.New("must be a duration such as 30s, 1m30s or 500ms")
		case d <= 0:
			return d, errors.New("must be positive")
		}
		return d, nil
	})
	f.add(v, name, summary)
	return v.to
}

// list declares a flag that may be repeated.
func list[T any](f *flags, name, value, summary string, read func(string) (T, error), choices ...string) *[]T {
	var all []T
	v := newValue(all, value, nil)
	v.read = func(s string) ([]T, error) {
		next, err := read(s)
		return append(*v.to, next), err
	}
	f.add(v, name, summary+"; may be repeated", choices...)
	return v.to
}

func (f *flags) texts(name, value, summary string, choices ...string) *[]string {
	return list(f, name, value, summary, func(s string) (string, error) { return s, nil }, choices...)
}

func (f *flags) patterns(name, summary string) *[]*regexp.Regexp {
	return list(f, name, "REGEXP", summary, regexp.Compile)
}

// nameAndValue splits NAME=VALUE.
func nameAndValue(s string) (name, value string, err error) {
	name, value, found := strings.Cut(s, "=")
	if !found || name == "" {
		return "", "", errors.New("must be NAME=VALUE")
	}
	return name, value, nil
}

// serverParameter reads NAME=VALUE. The value is a boolean, a number or a
// document if it reads as one, else a string.
func serverParameter(s string) (bson.E, error) {
	name, text, err := nameAndValue(s)
	var doc bson.D
	if err == nil && bson.UnmarshalExtJSON([]byte(`{"value": `+text+`}`), false, &doc) == nil && len(doc) == 1 {
		return bson.E{Key: name, Value: doc[0].Value}, nil
	}
	return bson.E{Key: name, Value: text}, err
}

// anySeed is the value of a seed flag that is given none.
const anySeed = "random"

// seed is a number that may be left out: then chance gives one. Nil means that the
// flag is absent.
func (f *flags) seed(name, summary string) **int64 {
	v := newValue[*int64](nil, "SEED", func(s string) (*int64, error) {
		seed, err := strconv.ParseInt(s, 10, 64)
		switch {
		case s == anySeed:
			seed = rand.Int64N(1_000_000)
		case err != nil:
			return nil, errNumber
		}
		return &seed, nil
	})
	f.add(v, name, summary).NoOptDefVal = anySeed
	return v.to
}

// shuffle names the flag whose value may be left out. pflag reads such a value
// only behind "=".
const shuffle = "--shuffle"

// joinSeeds writes "--shuffle 7" as "--shuffle=7".
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
