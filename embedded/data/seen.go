package data

import (
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

const (
	sessionTimeout = 30 * time.Minute
	maxSeen        = 10000
)

// seen are the sessions that commands came with, for $listLocalSessions.
type seen struct {
	mu   sync.Mutex
	last map[seenKey]time.Time
}

type seenKey struct{ server, session string }

// note remembers the session of a request.
func (s *seen) note(req *command.Request, now time.Time) {
	if req.LSID == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) >= maxSeen {
		for k, t := range s.last {
			if now.Sub(t) > sessionTimeout || len(s.last) >= maxSeen/2 {
				delete(s.last, k)
			}
		}
	}
	s.last[seenKey{address(req), sessionKey(req.LSID)}] = now
}

// forget drops sessions that have ended.
func (s *seen) forget(keys map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.last {
		if keys[k.session] {
			delete(s.last, k)
		}
	}
}

// list shows the sessions of a server as $listLocalSessions does.
func (s *seen) list(server string) []bson.D {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []bson.D
	for k, t := range s.last {
		if k.server != server {
			continue
		}
		out = append(out, bson.D{
			{Key: "_id", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte(k.session)}}, {Key: "uid", Value: command.UserDigest("")}}},
			{Key: "lastUse", Value: bson.NewDateTimeFromTime(t)},
		})
	}
	return out
}
