package process

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
)

// protocol is the version of the protocol that this package implements.
const protocol = 1

// The calls. An adapter makes callback; utr makes all others.
const (
	callHello    = "hello"
	callBegin    = "begin"
	callOpen     = "open"
	callDo       = "do"
	callEvents   = "events"
	callLogs     = "logs"
	callSpans    = "spans"
	callClose    = "close"
	callEnd      = "end"
	callCallback = "callback"
	// noteCancel is a notification: it cancels a call and has no reply.
	noteCancel = "cancel"
)

// version is the member "jsonrpc" of every message.
const version = "2.0"

// message is a line: a request if it has a method, otherwise a response.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      *int64          `json:"id,omitempty"` // absent in a notification
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// line encodes a message. content is the parameters or the result; an error response has no content.
func (m message) line(content any) (line []byte, err error) {
	m.JSONRPC = version
	switch {
	case m.Method != "":
		m.Params, err = json.Marshal(content)
	case m.Error == nil:
		m.Result, err = json.Marshal(content)
	}
	if err != nil {
		return nil, err
	}
	line, err = json.Marshal(m)
	return append(line, '\n'), err
}

// rpcError means that a call could not be performed. Errors of the driver under test are results.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// The codes of JSON-RPC that this package sends.
const (
	codeUnknownMethod = -32601
	codeBadParams     = -32602
	codeInternal      = -32603
)

func (e *rpcError) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

type helloParams struct {
	Protocol int    `json:"protocol"`
	Runner   string `json:"runner"` // name and version, for logs
}

type helloResult struct {
	Protocol int `json:"protocol"`
	engine.Description
	// ConcurrentTests is how many tests can be open at once. 0 means one, without inTest in the parameters.
	ConcurrentTests int `json:"concurrentTests,omitempty"`
}

// inTest names the test of a call, and is all parameters of begin and end.
type inTest struct {
	Test int64 `json:"test,omitempty"` // 0 without ConcurrentTests
}

type openParams struct {
	inTest
	Kind        string   `json:"kind"`
	ID          string   `json:"id"`
	Options     document `json:"options,omitempty"`
	URI         string   `json:"uri,omitempty"`
	ClusterTime document `json:"clusterTime,omitempty"`
}

// raised is the result of open and close: the error of the driver, if any.
type raised struct {
	Error *failure `json:"error,omitempty"`
}

type doParams struct {
	inTest
	Object    string   `json:"object"`
	Name      string   `json:"name"`
	Arguments document `json:"arguments,omitempty"`
	SaveAs    string   `json:"saveAs,omitempty"`
	Callback  bool     `json:"callback,omitempty"` // withTransaction: the adapter calls callback
}

type doResult struct {
	Value     value          `json:"value,omitzero"`
	Error     *failure       `json:"error,omitempty"`
	Server    string         `json:"server,omitempty"`
	ServiceID *bson.ObjectID `json:"serviceId,omitempty"`
	// Decisions are the decisions of the retry loop, if the engine reports them.
	Decisions []result.Decision `json:"decisions,omitempty"`
}

type callbackParams struct {
	Do int64 `json:"do"` // the id of the request whose callback utr runs
}

type callbackResult struct {
	Error *failure `json:"error,omitempty"`
	// RaisedBy is the id of the request that returned the error, 0 if it is not an
	// error of the driver. The adapter raises the original error again.
	RaisedBy int64 `json:"raisedBy,omitempty"`
}

type eventsParams struct {
	inTest
	Client string `json:"client"`
	After  int64  `json:"after"`
	WaitMS int64  `json:"waitMS"`
}

type eventsResult struct {
	Events []event `json:"events"`
}

// clientParams are the parameters of logs and spans.
type clientParams struct {
	inTest
	Client string `json:"client"`
}

type logsResult struct {
	Messages []logMessage `json:"messages"`
}

type spansResult struct {
	Spans []span `json:"spans"`
}

type closeParams struct {
	inTest
	ID string `json:"id"`
}

type cancelParams struct {
	ID int64 `json:"id"` // of the request
}

type nothing struct{}

// document is a BSON document, in canonical Extended JSON.
type document bson.Raw

// MarshalJSON writes canonical Extended JSON.
func (d document) MarshalJSON() ([]byte, error) { return bson.MarshalExtJSON(bson.Raw(d), true, false) }

// UnmarshalJSON reads canonical or relaxed Extended JSON.
func (d *document) UnmarshalJSON(data []byte) error {
	switch {
	case string(data) == "null":
		return fmt.Errorf("null is not a document")
	case isEmptyArray(data):
		data = []byte("{}")
	}
	return bson.UnmarshalExtJSON(data, false, (*bson.Raw)(d))
}

// value is any BSON value. Its type is 0 if it is absent.
type value bson.RawValue

// IsZero makes omitzero omit an absent value.
func (v value) IsZero() bool { return v.Type == 0 }

// MarshalJSON writes canonical Extended JSON.
func (v value) MarshalJSON() ([]byte, error) {
	data, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: bson.RawValue(v)}}, true, false)
	if err != nil {
		return nil, err
	}
	return data[len(`{"v":`) : len(data)-1], nil
}

// UnmarshalJSON reads canonical or relaxed Extended JSON.
func (v *value) UnmarshalJSON(data []byte) error {
	var raw bson.Raw
	err := bson.UnmarshalExtJSON(slices.Concat([]byte(`{"v":`), data, []byte(`}`)), false, &raw)
	if err == nil {
		*v = value(raw.Lookup("v"))
	}
	return err
}
