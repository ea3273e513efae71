package cli

import (
	"errors"
	"fmt"
)

// Exit codes.
const (
	ExitOK     = 0 // success
	ExitFailed = 1 // tests failed
	ExitUsage  = 2 // bad usage, or an invalid suite
	ExitBroken = 3 // set-up, deployment, engine or a report failed, or the command was interrupted
)

// exitError is an error with an exit code. Without err nothing is printed: the command has printed its output.
type exitError struct {
	code int
	err  error
	hint bool // whether to refer to the help
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage returns an error in the command line.
func usage(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...), hint: true}
}

// invalid marks the error of an input that cannot be used, such as a suite. It does not change an exitError or an
// interruption.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	if e := (*exitError)(nil); errors.As(err, &e) || errors.Is(err, errInterrupted) {
		return err
	}
	return &exitError{code: ExitUsage, err: err}
}

// exit returns an error with an exit code and no message, or nil for ExitOK.
func exit(code int) error {
	if code == ExitOK {
		return nil
	}
	return &exitError{code: code}
}

// codeOf returns the exit code of an error, ExitBroken by default.
func codeOf(err error) int {
	if e := (*exitError)(nil); errors.As(err, &e) {
		return e.code
	} else if err != nil {
		return ExitBroken
	}
	return ExitOK
}
