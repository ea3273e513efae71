package source

import "fmt"

// Error says why a file, or a value in it, cannot be used. It is the only
// type of error that this package returns.
type Error struct {
	Position Position
	Message  string // a full sentence part, without position
}

// Error gives file:line:column: message.
func (e *Error) Error() string {
	if e.Position.IsZero() {
		return e.Message
	}
	return e.Position.String() + ": " + e.Message
}

func errorAt(p Position, format string, args ...any) *Error {
	return &Error{Position: p, Message: fmt.Sprintf(format, args...)}
}
