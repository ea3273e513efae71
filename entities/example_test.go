package entities_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/entities"
)

// An engine keeps the objects of its driver by name, and closes them in order when the test ends.
func ExampleMap() {
	var m entities.Map
	for _, e := range []entities.Entity{
		{ID: "client0", Kind: entities.Client, Value: "the client"},
		{ID: "session0", Kind: entities.Session, Client: "client0", Value: "the session"},
		{ID: "cursor0", Kind: entities.Cursor, Client: "client0", Value: "the cursor"},
	} {
		if err := m.Add(e); err != nil {
			panic(err)
		}
	}
	_, err := entities.Value[string](&m, "client1", entities.Client)
	fmt.Println(err)
	fmt.Println(m.Add(entities.Entity{ID: "client0", Kind: entities.Database}))
	m.End(func(value any) { fmt.Println("closing", value) })
	// Output:
	// undefined entity: nothing is named "client1"
	// duplicate entity name: there is already a client "client0"
	// closing the cursor
	// closing the session
	// closing the client
}
