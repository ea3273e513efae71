package local

import (
	"bytes"
	"cmp"
	"os"
	"strings"
)

// exitNet is the exit status of a server that cannot listen.
const exitNet = 48

// statuses explains exit statuses of servers (MongoDB manual, "Exit Codes and Statuses") and of shells.
var statuses = map[int]string{
	0:       "it shut down",
	1:       "unspecified failure",
	2:       "an option is invalid or conflicts with another one",
	3:       "replication: host name mismatch",
	4:       "the data files are of an older version",
	5:       "sharding: invalid configuration",
	12:      "it was asked to shut down",
	14:      "unrecoverable error",
	exitNet: "it cannot listen on its port",
	61:      "the disk does not respond",
	62:      "the data files are of a newer version",
	87:      "its health check failed",
	100:     "uncaught exception, such as of a full or read-only disk",
	126:     "it is not executable",
	127:     "the program or one of its libraries was not found",
}

// signals explains signals that end servers.
var signals = map[string]string{
	"signal: illegal instruction": "5.0 and later require a processor with AVX, or ARMv8.2",
	"signal: killed":              "by another process, or by the system when memory ran out",
}

// ending describes how a process ended.
func ending(state *os.ProcessState) string {
	text := state.String() // "exit status 48", "signal: killed"
	if words := cmp.Or(statuses[state.ExitCode()], signals[strings.TrimSuffix(text, " (core dumped)")]); words != "" {
		text += " (" + words + ")"
	}
	return text
}

// portTaken reports whether a server exited because another process had its port. If both bind before they listen, one
// of them aborts, and only its log has the reason.
func portTaken(state *os.ProcessState, log string) bool {
	if state.ExitCode() == exitNet {
		return true
	}
	text, _ := lastBytes(log, tailBytes)
	return state.ExitCode() != 0 && bytes.Contains(bytes.ToLower(text), []byte("address already in use"))
}
