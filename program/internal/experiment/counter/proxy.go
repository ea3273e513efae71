package counter

import (
	"slices"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/internal/net/interpose"
)

// Fault is a fault during a write.
type Fault string

// The faults.
const (
	NoFault      Fault = "none"
	LostRequest  Fault = "lost-request"  // the connection closes before the server reads the write
	LostReply    Fault = "lost-reply"    // the connection closes after the server executed it
	NotMaster    Fault = "not-master"    // the server answers once that it is no longer the primary
	Failover     Fault = "failover"      // either, and the set has no primary for a moment
	Outage       Fault = "outage"        // either, and no server is reachable until the application gives up
	CommandError Fault = "command-error" // the server returns an error for every attempt
)

// Faults lists the faults.
func Faults() []Fault {
	return []Fault{NoFault, LostRequest, LostReply, NotMaster, Failover, Outage, CommandError}
}

// lasts reports whether retries cannot succeed.
func (f Fault) lasts() bool { return f == Outage || f == CommandError }

// election is the time without a primary in a failover.
const election = 100 * time.Millisecond

// point is where a fault occurs: at a command, after skipping some of its kind. executed
// selects before or after execution for Failover and Outage.
type point struct {
	command  string
	skip     int
	executed bool
}

// proxy causes faults between a client and a server.
type proxy struct {
	*interpose.Proxy
	returning sync.WaitGroup

	mu       sync.Mutex
	fault    Fault
	point    point
	occurred bool
	writes   int
}

func listen(server string) (p *proxy, err error) {
	p = &proxy{fault: NoFault}
	p.Proxy, err = interpose.Listen(server, interpose.Hooks{Command: p.judge, Replied: p.replied})
	return p, err
}

func (p *proxy) close() {
	p.Close()
	p.returning.Wait()
}

// arm enables a fault. disarm ends it and returns the number of writes.
func (p *proxy) arm(f Fault, at point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.point, p.occurred, p.writes = f, at, false, 0
}

func (p *proxy) disarm() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = NoFault
	p.Return()
	return p.writes
}

// affected are the commands that faults can affect.
var affected = []string{"find", "insert", "update", "delete", "commitTransaction"}

// judge decides about a command.
func (p *proxy) judge(command string) interpose.Action {
	if !slices.Contains(affected, command) {
		return interpose.Forward
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	switch {
	case p.fault == NoFault || p.occurred && p.fault != CommandError || command != p.point.command &&
		p.fault != CommandError:
		return interpose.Forward
	case p.point.skip > 0:
		p.point.skip--
		return interpose.Forward
	}
	p.occurred = true
	switch p.fault {
	case CommandError:
		return interpose.Refuse
	case NotMaster:
		return interpose.StepDown
	case LostReply:
		return interpose.DropReply
	case LostRequest:
		return interpose.DropRequest
	}
	if p.point.executed {
		return interpose.DropReply // replied then closes the other connections
	}
	p.vanish()
	return interpose.DropRequest
}

// replied closes the other connections after a write whose reply is dropped.
func (p *proxy) replied(_ string, deed interpose.Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if deed == interpose.DropReply && (p.fault == Failover || p.fault == Outage) {
		p.vanish()
	}
}

// vanish closes all connections, including new ones, until the end of the election or of the fault.
func (p *proxy) vanish() {
	p.Vanish()
	if p.fault == Failover {
		p.returning.Go(func() {
			time.Sleep(election)
			p.Return()
		})
	}
}
