package cli

import (
	"errors"
	"fmt"
)

// The exit codes of utr.
const (
	ExitOK     = 0 // all well
	ExitFailed = 1 // tests failed
	ExitUsage  = 2 // bad usage, or an invalid suite
	ExitBroken = 3 // set-up, deployment, engine or a report broke; interrupted
)

// exitError is an error that knows its exit code. Without a message nothing is
// printed: the command has printed what there is to print.
type exitError struct {
	code int
	err  error
	hint bool // point to the help
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage is an error in what the user typed.
func usage(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...), hint: true}
}

// invalid is an input, such as a suite, that cannot be used. An error that knows its
// exit code stays as it is, and so does an interruption.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	if e := (*exitError)(nil); errors.As(err, &e) || errors.Is(err, errInterrupted) {
		return err
	}
	return &exitError{code: ExitUsage, err: err}
}

// exit ends with a code and prints nothing.
func exit(code int) error {
	if code == ExitOK {
		return nil
	}
	return &exitError{code: code}
}

// codeOf returns the exit code of an error. An error of unknown kind means that
// something broke.
func codeOf(err error) int {
	if e := (*exitError)(nil); errors.As(err, &e) {
		return e.code
	} else if err != nil {
		return ExitBroken
	}
	return ExitOK
}
