package proxy

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// sessions are the ids of the sessions of commands.
type sessions struct {
	mu  sync.Mutex
	ids map[string]bson.RawValue
}

// Sessions returns the ids (lsid.id) of the sessions of all commands since the last call.
func (p *Proxy) Sessions() []bson.RawValue {
	s := &p.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.Collect(maps.Values(s.ids))
	s.ids = map[string]bson.RawValue{} // from now on, they are recorded
	return ids
}

// see records the session of a command, once Sessions was called.
func (s *sessions) see(body bson.Raw) {
	id, err := body.LookupErr("lsid", "id")
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.ids[string(id.Value)]; s.ids != nil && !known {
		id.Value = bytes.Clone(id.Value)
		s.ids[string(id.Value)] = id
	}
}
