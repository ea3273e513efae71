package direct_test

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/embedded"
)

// Commands run without a client. An error of the server has its code.
func ExampleRun() {
	ctx := context.Background()
	d, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = d.Close() }()
	hello, err := direct.ReadHello(direct.Run(ctx, d.Hosts()[0], nil, "admin", bson.D{{Key: "hello", Value: 1}}))
	fmt.Println(hello.Mongos(), err)
	_, err = direct.Run(ctx, d.Hosts()[0], nil, "admin", bson.D{{Key: "helo", Value: 1}})
	fmt.Println(direct.CodeOf(err), direct.Transient(err))
	// Output:
	// false <nil>
	// 59 false
}
