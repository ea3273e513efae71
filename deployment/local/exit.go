package local

import (
	"bytes"
	"errors"
	"os"
	"strings"
)

// exitNet is the exit status of a server that cannot listen.
const exitNet = 48

// statuses are what servers mean by their exit status (MongoDB manual, "Exit
// Codes and Statuses"), beside those that a shell gives.
var statuses = map[int]string{
	0:       "it shut down",
	1:       "a failure that has no number of its own",
	2:       "an option is wrong, or does not go with another one",
	3:       "replication: its host name does not fit",
	4:       "the files are of an older version",
	5:       "sharding: its configuration is wrong",
	12:      "it was asked to end",
	14:      "something that it could not recover from",
	20:      "on Windows: the service",
	exitNet: "it cannot listen on its port",
	61:      "its disk does not answer",
	62:      "the files are of a newer version",
	87:      "a check of its own health failed",
	100:     "an exception that nobody caught, such as a disk that is full or may not be written to",
	126:     "it cannot be run",
	127:     "it, or a library that it needs, was not found",
}

// signals are what can be said to the signals that end servers.
var signals = map[string]string{
	"signal: illegal instruction": "5.0 and later need a processor with AVX, on ARM one of version 8.2",
	"signal: killed":              "by somebody else, or by the system since memory ran out",
}

// endedError says how a process ended.
func endedError(state *os.ProcessState) error {
	text := state.String() // "exit status 48", "signal: killed"
	words := statuses[state.ExitCode()]
	if words == "" {
		words = signals[strings.TrimSuffix(text, " (core dumped)")]
	}
	if words != "" {
		text += " (" + words + ")"
	}
	return errors.New(text)
}

// portTaken reports whether a server ended since somebody else had its port.
// Where two bind it and then listen, the loser aborts, and only its log says
// why.
func portTaken(state *os.ProcessState, log string) bool {
	if state.ExitCode() == exitNet {
		return true
	}
	text, _ := lastBytes(log, tailBytes)
	return state.ExitCode() != 0 && bytes.Contains(bytes.ToLower(text), []byte("address already in use"))
}
