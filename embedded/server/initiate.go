package server

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// replSetInitiate gives a server that waits for it the configuration of its
// set. What follows is up to who started the server.
func (x *exchange) replSetInitiate() (bson.D, error) {
	c := x.conn.server.cluster
	switch {
	case x.view.Role == command.Standalone:
		return nil, command.Errorf(command.CodeNoReplicationEnabled, "This node was not started with replication enabled.")
	case x.view.Role != command.Uninitiated:
		return nil, command.Errorf(command.CodeAlreadyInitialized, "already initialized")
	case c.Initiate == nil:
		return nil, command.Errorf(command.CodeIllegalOperation, "this server can not be initiated")
	}
	config, ok := x.request.Body.Index(0).Value().DocumentOK()
	if !ok || len(config) <= 5 {
		config = marshal(bson.D{
			{Key: "_id", Value: c.SetName},
			{Key: "version", Value: int32(1)},
			{Key: "members", Value: bson.A{bson.D{{Key: "_id", Value: int32(0)}, {Key: "host", Value: x.view.Address}}}},
		})
	}
	return nil, c.Initiate(x.conn.ctx, config)
}

// replSetReconfig gives the set another configuration.
func (x *exchange) replSetReconfig() (bson.D, error) {
	if fields, err := x.replicated(); err != nil {
		return fields, err
	}
	c := x.conn.server.cluster
	doc, ok := x.request.Body.Index(0).Value().DocumentOK()
	force, _ := x.request.Body.Lookup("force").BooleanOK()
	switch {
	case c.Reconfigure == nil:
		return nil, command.Errorf(command.CodeIllegalOperation, "this replica set has a configuration that can not be changed")
	case !ok:
		return nil, command.Errorf(command.CodeBadValue, "replSetReconfig needs a configuration document")
	case !force && x.view.Role != command.Primary:
		return nil, x.notPrimary(command.CodeNotWritablePrimary, "New config is rejected :: caused by :: "+
			"replSetReconfig should only be run on a writable PRIMARY. Current state SECONDARY;")
	}
	set, err := ParseSetConfig(doc)
	if err != nil {
		return nil, err
	}
	if set.Name != c.SetName {
		return nil, command.Errorf(command.CodeNewReplicaSetConfigurationIncompatible,
			"New and old configurations differ in replica set name; old was %s, and new is %s", c.SetName, set.Name)
	}
	old := x.view.layout.version
	if force {
		set.Version = max(set.Version, old+1)
	}
	if set.Version <= old {
		return nil, command.Errorf(command.CodeNewReplicaSetConfigurationIncompatible,
			"New replica set configuration version must be greater than old, but %d is not greater than %d for replica set %s",
			set.Version, old, set.Name)
	}
	self := slices.IndexFunc(set.Members, func(m Member) bool { return m.Host == x.view.Address })
	switch {
	case self < 0 && !force:
		return nil, command.Errorf(command.CodeNodeNotFound,
			"No host described in new configuration with {version: %d, term: %d} for replica set %s maps to this node",
			set.Version, x.view.Term, set.Name)
	case self >= 0 && !set.Members[self].electable() && x.view.Role == command.Primary:
		return nil, command.Errorf(command.CodeNodeNotElectable,
			"This node, %s, with _id MemberId(%d) is not electable under the new configuration with {version: %d, term: %d} for replica set %s",
			x.view.Address, set.Members[self].ID, set.Version, x.view.Term, set.Name)
	}
	removed, err := c.Configure(set)
	if err != nil {
		return nil, err
	}
	c.Reconfigure(removed)
	return nil, nil
}

// shutdown ends the process that the server stands for. It sends no answer.
func (x *exchange) shutdown() (bson.D, error) {
	stop := x.conn.server.process.Shutdown
	if stop == nil {
		return nil, command.Errorf(command.CodeIllegalOperation, "this server lives as long as its deployment")
	}
	stop()
	return nil, command.ErrClose
}
