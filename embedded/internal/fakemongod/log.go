package main

import (
	"io"
	"log/slog"
	"time"
)

// newLog returns a logger that writes a JSON document per line, in the format of mongod. Attributes belong in a group
// named attr.
func newLog(out io.Writer) *slog.Logger {
	rename := func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case len(groups) > 0:
		case a.Key == slog.TimeKey:
			return slog.Any("t", map[string]string{"$date": time.Now().Format("2006-01-02T15:04:05.000-07:00")})
		case a.Key == slog.LevelKey:
			return slog.Group("", "s", "I", "c", "-", "id", 0, "ctx", "utr")
		}
		return a
	}
	return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{ReplaceAttr: rename}))
}
