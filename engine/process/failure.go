package process

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/unified-test-runner/utr/internal/exchange"
	"github.com/unified-test-runner/utr/result"
)

// failure is an error of the driver under test: result.Error in a message.
type failure struct {
	Message string `json:"message"`
	// Client is true if the error does not derive from a server response.
	Client             bool               `json:"client,omitempty"`
	Timeout            bool               `json:"timeout,omitempty"`
	Kind               string             `json:"kind,omitempty"`
	Code               *int32             `json:"code,omitempty" if:"HasCode"`
	CodeName           string             `json:"codeName,omitempty"`
	Labels             []string           `json:"labels,omitempty"`
	Response           document           `json:"response,omitempty"`
	WriteErrors        map[index]document `json:"writeErrors,omitempty"`
	WriteConcernErrors []document         `json:"writeConcernErrors,omitempty"`
	Partial            value              `json:"partial,omitzero"`
	Server             string             `json:"server,omitempty"`
	Unsupported        string             `json:"unsupported,omitempty"`
}

// index is that of a write.
type index int

// UnmarshalText reads the name of a field.
func (i *index) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 {
		return fmt.Errorf("writeErrors: %q is not an index", text)
	}
	*i = index(n)
	return nil
}

func failureOf(e *result.Error) *failure {
	if e == nil {
		return nil
	}
	f := &failure{}
	exchange.Write(f, e)
	return f
}

func (f *failure) error() (*result.Error, error) {
	switch {
	case f == nil:
		return nil, nil
	case f.Message == "" && f.Unsupported == "":
		return nil, errors.New("an error without a message")
	}
	e := &result.Error{}
	exchange.Read(f, e)
	return e, nil
}
