package source

import "fmt"

// Error describes an invalid file or value. All errors of this package have this type.
type Error struct {
	Position Position
	Message  string // without the position
}

// Error returns "file:line:column: message".
func (e *Error) Error() string {
	if e.Position.IsZero() {
		return e.Message
	}
	return e.Position.String() + ": " + e.Message
}

func errorAt(p Position, format string, args ...any) *Error {
	return &Error{Position: p, Message: fmt.Sprintf(format, args...)}
}
