package cli

import (
	"context"
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

func (e *exitError) Error() string { return fmt.Sprint(e.err) }
func (e *exitError) Unwrap() error { return e.err }

// exitOf returns the exit error in err, or nil.
func exitOf(err error) (e *exitError) {
	_ = errors.As(err, &e)
	return e
}

func usage(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...), hint: true}
}

// invalid marks the error of an unusable input, such as a suite. It keeps exit errors and interruptions.
func invalid(err error) error {
	if err == nil || exitOf(err) != nil || errors.Is(err, context.Canceled) {
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

func codeOf(err error) int {
	switch e := exitOf(err); {
	case e != nil:
		return e.code
	case err != nil:
		return ExitBroken
	}
	return ExitOK
}
