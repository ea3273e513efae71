package orchestration

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"
)

// ErrNotFound is that the service has no such cluster.
var ErrNotFound = errors.New("not found")

// Error is a request that failed. It holds no credentials of the service's
// URL; the message is the service's own.
type Error struct {
	Method, URL string
	Status      int    // of the answer, 0 if there was none that can be used
	Message     string // what the service said
	Err         error  // why there is no answer that can be used
	// Unanswered reports whether the service may have got the request, and gave no
	// whole answer: what was asked for can still happen.
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

// Is makes a 404 equal to ErrNotFound.
func (e *Error) Is(target error) bool {
	return target == ErrNotFound && e.Status == http.StatusNotFound
}

// raised is how the last part of a Python traceback begins: the error itself.
var raised = regexp.MustCompile(`(?m)^[A-Za-z_][\w.]*(?:: |$)`)

// htmlTag keeps the words of a web server's own error page.
var htmlTag = regexp.MustCompile(`(?s)<(?:style|script|title)[^>]*>.*?</(?:style|script|title)>|<[^>]*>`)

// said finds in the text of an answer what people want to read: of a traceback
// the error that it ends with, of a page its words.
func said(text []byte) string {
	s := strings.TrimSpace(string(text))
	switch {
	case strings.HasPrefix(s, "Traceback"):
		s = exceptions(s)
	case strings.HasPrefix(s, "<"):
		s = htmlTag.ReplaceAllString(s, " ")
	}
	return excerpt(s, 2000)
}

// exceptions gives the error that a traceback ends with, and in brackets the
// one that was first: what Python was handling when it came to the other.
func exceptions(s string) string {
	all := raised.FindAllStringIndex(s, -1)
	if len(all) == 0 {
		return s
	}
	from := func(i int) string {
		text, _, _ := strings.Cut(s[all[i][0]:], "\n\n")
		return text
	}
	last := len(all) - 1
	if last == 0 {
		return from(0)
	}
	return from(last) + " (" + strings.TrimSpace(from(0)) + ")"
}

// excerpt puts a text on one line of at most so many bytes.
func excerpt(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
