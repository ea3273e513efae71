package wire

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Error is an error that a server sends to the client. Code, text and the place of an invalid element are the same as
// on MongoDB servers.
type Error struct {
	Code int32
	What string
	Path string        // names of the element and those around it; "" if the error is not about an element
	ID   bson.RawValue // the _id of the document; zero if it does not precede the element
}

func refuse(code int32, format string, args ...any) *Error {
	return &Error{Code: code, What: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return e.Text(bson.RawValue.String) }

// Text returns the message. It renders the _id with a function.
func (e *Error) Text(render func(bson.RawValue) string) string {
	if e.Path == "" {
		return e.What
	}
	object := "unknown _id"
	if e.ID.Type != 0 {
		object = "_id: " + render(e.ID)
	}
	return fmt.Sprintf("%s in element with field name '%s' in object with %s", e.What, e.Path, object)
}
