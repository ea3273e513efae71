package orchestration

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"
)

// ErrNotFound means that the service does not have the cluster.
var ErrNotFound = errors.New("not found")

// Error is a failed request. It contains no credentials of the service's URL. Message is the service's own.
type Error struct {
	Method, URL string
	Status      int    // of the answer, 0 without a usable one
	Message     string // the service's message
	Err         error  // why the reply is unusable
	// Unanswered reports whether the service may have received the request without sending a complete answer: it may
	// still execute the request.
	Unanswered bool
}

func (e *Error) Error() string {
	at := fmt.Sprintf("orchestration: %s %s: ", e.Method, e.URL)
	switch {
	case e.Err != nil:
		return at + e.Err.Error()
	case e.Message == "":
		return at + strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
	default:
		return fmt.Sprintf("%s%d: %s", at, e.Status, e.Message)
	}
}

func (e *Error) Unwrap() error { return e.Err }

func (e *Error) Is(target error) bool {
	return target == ErrNotFound && e.Status == http.StatusNotFound
}

// raised matches the exception after a Python traceback, to the next empty line.
var raised = regexp.MustCompile(`(?ms)^[A-Za-z_][\w.]*(?:: |$).*?(?:\n\n|\z)`)

// htmlTag matches what is not text on the error page of a web server.
var htmlTag = regexp.MustCompile(`(?s)<(?:style|script|title)[^>]*>.*?</(?:style|script|title)>|<[^>]*>`)

// message extracts the message from an answer: the exceptions of a traceback, or the text of a page.
func message(text []byte) string {
	s := strings.TrimSpace(string(text))
	switch {
	case strings.HasPrefix(s, "Traceback"):
		s = exceptions(s)
	case strings.HasPrefix(s, "<"):
		s = htmlTag.ReplaceAllString(s, " ")
	}
	return excerpt(s, 2000)
}

// exceptions returns the last exception of a traceback, and in parentheses the first one, which Python was handling
// when the last was raised.
func exceptions(s string) string {
	all := raised.FindAllString(s, -1)
	switch n := len(all); n {
	case 0:
		return s
	case 1:
		return all[0]
	default:
		return all[n-1] + " (" + strings.TrimSpace(all[0]) + ")"
	}
}

// excerpt puts a text on one line and limits its length.
func excerpt(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
