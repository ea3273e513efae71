// Command mutate checks the tests: it breaks the program in one place at a time, and expects a test to fail. It does
// not modify the tree: each changed file is an overlay for the compiler.
//
//	mutate [-n N] [-budget D] [-seed S] [-tests PACKAGES] PACKAGE...   the mutations that it finds in packages
//	mutate [-n N] [-budget D] [-seed S] -named REGEXP                  the mutations of named.txt
//
// It tries them in random order. It exits with 1 if a mutation survives that is not in survivors.txt, if a named
// mutation does not fit the code, or if it did not try any.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	named := flag.String("named", "", "try the named mutations whose title or file matches this `regexp`")
	n := flag.Int("n", math.MaxInt, "how many mutations to try; by default all")
	budget := flag.Duration("budget", 24*time.Hour, "begin no further mutation after this `time`")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "the seed of the sample")
	tests := flag.String("tests", "", "also run the tests of these `packages`, separated by spaces")
	jobs := flag.Int("jobs", runtime.NumCPU(), "how many mutations are tried in parallel")
	flag.Parse()
	if (*named == "") == (flag.NArg() == 0) {
		return errors.New("either packages or -named is required")
	}
	mutations, err := find(*named, flag.Args(), strings.Fields(*tests))
	if err != nil {
		return err
	}
	fmt.Printf("mutations: %d; -seed %d repeats this order\n", len(mutations), *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	random.Shuffle(len(mutations), func(i, j int) { mutations[i], mutations[j] = mutations[j], mutations[i] })
	end := time.Now().Add(*budget)
	return tryAll(ctx, mutations, *jobs, func(tried int) bool { return tried >= *n || time.Now().After(end) })
}

// find returns the named mutations that match, or the mutations in the folders without the known survivors.
func find(named string, dirs, tests []string) (mutations []Mutation, err error) {
	if named != "" {
		return readNamed(named)
	}
	for _, dir := range dirs {
		found, err := mutationsIn(dir, tests)
		if err != nil {
			return nil, err
		}
		mutations = append(mutations, found...)
	}
	known, err := readFile(survivorsFile)
	return without(mutations, known), err
}

// readNamed reads the named mutations that match.
func readNamed(match string) (chosen []Mutation, err error) {
	pattern, err := regexp.Compile(match)
	if err != nil {
		return nil, err
	}
	all, err := readFile(namedFile)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if pattern.MatchString(m.Title) || pattern.MatchString(m.File) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%s: no mutation matches %q", namedFile, match)
	}
	return chosen, nil
}

// tryAll tries mutations in parallel until there are enough, and prints those that no test detects. Found mutations
// that do not build are not counted.
func tryAll(ctx context.Context, mutations []Mutation, jobs int, enough func(tried int) bool) error {
	var mu sync.Mutex
	var all errgroup.Group
	all.SetLimit(max(1, jobs))
	count := map[verdict]int{}
	start := time.Now()
	done := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ctx.Err() != nil || enough(count[killed]+count[survived])
	}
	for _, m := range mutations {
		all.Go(func() error {
			if done() {
				return nil
			}
			v, err := m.try(ctx)
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() != nil {
				return nil
			}
			if count[v]++; v == survived || v == unfit && !m.found {
				fmt.Printf("%s:\n%s", v, m)
				if err != nil {
					fmt.Println(" ", err)
				}
			}
			return nil
		})
	}
	_ = all.Wait()
	fmt.Printf("%d killed, %d survived, %d do not fit the code, in %s\n", count[killed], count[survived], count[unfit],
		time.Since(start).Round(time.Second))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case count[survived] > 0:
		return errors.New("tests are missing, or reasons in " + survivorsFile)
	case count[unfit] > 0 && !mutations[0].found:
		return errors.New("named mutations do not fit the code")
	case count[killed] == 0:
		return errors.New("no mutation was tried")
	}
	return nil
}
