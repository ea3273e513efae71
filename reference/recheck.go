package reference

import "time"

// minHeartbeat is minHeartbeatFrequencyMS (Server Discovery and Monitoring,
// "minHeartbeatFrequencyMS").
const minHeartbeat = 500 * time.Millisecond

// recheck has the monitor of a server look at it at once, after an error made
// it Unknown without a change that the server itself would tell of: a mongos or
// a standalone that says NotWritablePrimary because a fail point told it to, for
// one. The topology's own request for a check is not heard by a monitor that
// streams hello, and the server would stay Unknown until its next heartbeat.
//
// The stream ends as if it had timed out, for which a monitor connects again
// without clearing the pool. That is done once in an interval at most; a
// request that comes too early waits for its time. Unknown is asked then.
func (s *sockets) recheck(address string, interval time.Duration, unknown func() bool) {
	wait, ours := s.appoint(address, time.Now(), min(interval, minHeartbeat))
	check := func() {
		s.mu.Lock()
		monitor := s.monitors[address]
		s.mu.Unlock()
		if monitor != nil {
			monitor.failWhile(checkNow{}, unknown)
		}
	}
	switch {
	case !ours:
	case wait > 0:
		time.AfterFunc(wait, check)
	default:
		check()
	}
}

// starting is how long an attempt waits for a monitor that has just checked a
// server to begin to stream.
const starting = 50 * time.Millisecond

// awaitStream waits until the monitor of a server streams, as it does right
// after its first check, and gives its socket; nil if it does not for long.
//
// No attempt may begin earlier. If it fails at once and makes the server Unknown
// before the monitor gets there, then the monitor does not begin to stream, but
// sleeps for minHeartbeat, and no one can wake it.
func (s *sockets) awaitStream(address string) *socket {
	timer := time.NewTimer(starting)
	defer timer.Stop()
	return s.streaming(address, timer.C, func() bool { return false })
}

// appoint tells how long the next immediate check of a server has to wait, and
// whether it is the caller's to make: false means that one is waiting already.
func (s *sockets) appoint(address string, now time.Time, interval time.Duration) (wait time.Duration, ours bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, before := s.rechecked[address]
	switch {
	case before && last.After(now):
		return 0, false
	case before && last.Add(interval).After(now):
		wait = last.Add(interval).Sub(now)
	}
	s.rechecked[address] = now.Add(wait)
	return wait, true
}

// checkNow is what a monitor gets in place of the heartbeat that it awaits.
type checkNow struct{}

func (checkNow) Error() string   { return "the check was ended for an immediate one" }
func (checkNow) Timeout() bool   { return true }
func (checkNow) Temporary() bool { return true }
