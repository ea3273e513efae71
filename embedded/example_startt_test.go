package embedded_test

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded"
)

// The application under test: it connects to the deployment that its configuration names.
func signUp(ctx context.Context, uri, name string) (people int64, err error) {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Disconnect(ctx) }()
	all := client.Database("app").Collection("people")
	if _, err := all.InsertOne(ctx, bson.D{{Key: "_id", Value: name}}); err != nil {
		return 0, err
	}
	return all.CountDocuments(ctx, bson.D{})
}

// In a Go test, three lines start a replica set, call the application, and check the result:
//
//	func TestSignUp(t *testing.T) {
//		d := embedded.StartT(t, embedded.Options{Topology: embedded.ReplicaSet})
//		people, err := signUp(t.Context(), d.URI(), "ann")
//		…
//	}
func ExampleStartT() {
	t := &exampleTest{} // in a Go test, its *testing.T
	defer t.end()

	d := embedded.StartT(t, embedded.Options{Topology: embedded.ReplicaSet})
	fmt.Println(signUp(context.Background(), d.URI(), "ann"))
	fmt.Println(signUp(context.Background(), d.URI(), "ben"))
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// exampleTest takes the place of *testing.T, which an example does not have.
type exampleTest struct{ cleanUp []func() }

func (t *exampleTest) Helper()                        {}
func (t *exampleTest) Cleanup(f func())               { t.cleanUp = append(t.cleanUp, f) }
func (t *exampleTest) Fatalf(form string, all ...any) { panic(fmt.Sprintf(form, all...)) }

func (t *exampleTest) end() {
	for _, f := range t.cleanUp {
		f()
	}
}
