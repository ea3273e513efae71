package process

import (
	"fmt"
	"strconv"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// failure is the JSON form of result.Error, an error of the driver under test.
type failure struct {
	Message            string              `json:"message"`
	Client             bool                `json:"client,omitempty"` // not from a server response
	Timeout            bool                `json:"timeout,omitempty"`
	Kind               string              `json:"kind,omitempty"`
	Code               *int32              `json:"code,omitempty"`
	CodeName           string              `json:"codeName,omitempty"`
	Labels             []string            `json:"labels,omitempty"`
	Response           document            `json:"response,omitempty"`
	WriteErrors        map[string]document `json:"writeErrors,omitempty"` // by index
	WriteConcernErrors []document          `json:"writeConcernErrors,omitempty"`
	Partial            value               `json:"partial,omitzero"`
	Server             string              `json:"server,omitempty"`
	Unsupported        string              `json:"unsupported,omitempty"`
}

func failureOf(e *result.Error) *failure {
	if e == nil {
		return nil
	}
	f := &failure{Message: e.Message, Client: e.Client, Timeout: e.Timeout, Kind: e.Kind, CodeName: e.CodeName, Labels: e.Labels,
		Response: document(e.Response), Partial: value(e.Partial), Server: e.Server, Unsupported: e.Unsupported}
	if e.HasCode {
		f.Code = &e.Code
	}
	for i, d := range e.WriteErrors {
		if f.WriteErrors == nil {
			f.WriteErrors = make(map[string]document, len(e.WriteErrors))
		}
		f.WriteErrors[strconv.Itoa(i)] = document(d)
	}
	for _, d := range e.WriteConcernErrors {
		f.WriteConcernErrors = append(f.WriteConcernErrors, document(d))
	}
	return f
}

func (f *failure) error() (*result.Error, error) {
	if f == nil {
		return nil, nil
	}
	if f.Message == "" && f.Unsupported == "" {
		return nil, fmt.Errorf("an error without a message")
	}
	e := &result.Error{Message: f.Message, Client: f.Client, Timeout: f.Timeout, Kind: f.Kind, CodeName: f.CodeName, Labels: f.Labels,
		Response: bson.Raw(f.Response), Partial: bson.RawValue(f.Partial), Server: f.Server, Unsupported: f.Unsupported}
	if f.Code != nil {
		e.Code, e.HasCode = *f.Code, true
	}
	for key, d := range f.WriteErrors {
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 {
			return nil, fmt.Errorf("writeErrors: %q is not an index", key)
		}
		if e.WriteErrors == nil {
			e.WriteErrors = make(map[int]bson.Raw, len(f.WriteErrors))
		}
		e.WriteErrors[i] = bson.Raw(d)
	}
	for _, d := range f.WriteConcernErrors {
		e.WriteConcernErrors = append(e.WriteConcernErrors, bson.Raw(d))
	}
	return e, nil
}
