package embedded_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// logged returns the log since a time as text.
func logged(d *embedded.Deployment, from time.Time) string {
	var text strings.Builder
	for _, l := range d.Log(from, time.Now()) {
		text.WriteString(l.Server + " " + l.Text + "\n")
	}
	return text.String()
}

// The log contains what explains a failure, in order.
func TestLog(t *testing.T) {
	d := start(t, embedded.Options{Topology: embedded.ReplicaSet})
	primary := d.Primary()
	began := time.Now()
	client := connect(t, d.URI(), func(o *options.ClientOptions) { o.SetAppName("the test").SetRetryReads(false) })
	fail := func(data string) {
		t.Helper()
		testkit.Check(t, client.Database("admin").RunCommand(testkit.Context(t), testkit.Extended[bson.D](t,
			`{"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": {"failCommands": ["find"], `+data+`}}`)).Err())
		if err := client.Database("db").Collection("c").FindOne(testkit.Context(t), bson.D{}).Err(); err == nil {
			t.Fatalf("the fail point had no effect: %s", data)
		}
	}
	fail(`"errorCode": 112, "errorLabels": ["ALabel"]`)
	fail(`"closeConnection": true`)
	_, err := client.Database("db").Collection("c").InsertOne(testkit.Context(t), bson.D{{Key: "_id", Value: "private"}})
	testkit.Check(t, err)
	unsatisfiable := testkit.Extended[bson.D](t, `{"insert": "c", "documents": [{}], "writeConcern": {"w": 9}}`)
	_ = client.Database("db").RunCommand(testkit.Context(t), unsatisfiable).Err()
	testkit.Check(t, d.StepDown())
	text := logged(d, began)
	at := 0
	for _, want := range []string{
		primary + " conn ", "accepted\n", "driver mongo-go-driver, application the test\n",
		`fail point failCommand set: {"mode":{"times":1},"data":{"failCommands":["find"],"errorCode":112,"errorLabels":["ALabel"]}}`,
		"configureFailPoint admin.failCommand ok (",
		"fail point hits find: error 112 WriteConflict\n",
		"find db.c error 112 WriteConflict {ALabel} (", "Failing command via 'failCommand' failpoint\n",
		"fail point hits find: closes the connection\n",
		"find db.c gets no reply: the connection is closed", "closed\n",
		"insert db.c ok (", "insert db.c ok, with a write concern error 100 UnsatisfiableWriteConcern (",
		primary + " steps down\n", " becomes primary in term 2\n",
	} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing in:\n%s\nof\n%s", want, text[at:], text)
		}
		at += i
	}
	for reason, not := range map[string]string{"heartbeats": " hello ", "data": "private"} {
		if strings.Contains(text, not) {
			t.Errorf("the log contains %s:\n%s", reason, text)
		}
	}
	if rest := d.Log(time.Now().Add(time.Minute), time.Now().Add(time.Hour)); len(rest) > 0 {
		t.Errorf("lines after now: %v", rest)
	}
}

// The log contains authentication commands without their credentials.
func TestLogHasNoSecrets(t *testing.T) {
	d := start(t, embedded.Options{Users: []embedded.User{{Name: "ann", Password: "open-sesame"}}})
	began := time.Now()
	client := connect(t, d.URI())
	testkit.Check(t, client.Ping(testkit.Context(t), nil))
	create := testkit.Extended[bson.D](t,
		`{"createUser": "bob", "pwd": "another-word", "roles": [], "comment": {"word": "open-sesame"}}`)
	for range 2 { // the second attempt fails, because the user exists
		_ = client.Database("admin").RunCommand(testkit.Context(t), create).Err()
	}
	wrong := connect(t, strings.Replace(d.URI(), "open-sesame", "wrong-word", 1))
	if err := wrong.Ping(testkit.Context(t), nil); err == nil {
		t.Error("a wrong password was accepted")
	}
	text := logged(d, began)
	testkit.Contains(t, text, "createUser admin ok", "createUser admin error", "sasl")
	for _, not := range []string{"open-sesame", "another-word", "wrong-word", "n=ann", "n,,", "r=", "p=",
		base64.StdEncoding.EncodeToString([]byte("n,,"))} {
		if strings.Contains(text, not) {
			t.Errorf("the log contains %q:\n%s", not, text)
		}
	}
}
