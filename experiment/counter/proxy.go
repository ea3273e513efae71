package counter

import (
	"slices"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/internal/interpose"
)

// Fault is what happens to a write.
type Fault string

// The faults.
const (
	LostRequest  Fault = "lost-request"  // the connection breaks before the server has read it
	LostReply    Fault = "lost-reply"    // it breaks after the server has executed it
	Failover     Fault = "failover"      // either, and the set has no primary for a moment
	Outage       Fault = "outage"        // either, and nothing is reachable until the application gives up
	CommandError Fault = "command-error" // the server refuses it, again and again
)

// Faults lists the faults.
func Faults() []Fault { return []Fault{LostRequest, LostReply, Failover, Outage, CommandError} }

// lasts reports whether trying again cannot help.
func (f Fault) lasts() bool { return f == Outage || f == CommandError }

// election is how long a failover leaves a set without a primary.
const election = 100 * time.Millisecond

// strike says where a fault strikes: at a command, after skipping some of them. executed
// decides for faults that leave it open.
type strike struct {
	command  string
	skip     int
	executed bool
}

// proxy stands between one client and a server, and makes faults strike.
type proxy struct {
	*interpose.Proxy
	returning sync.WaitGroup

	mu     sync.Mutex
	fault  Fault // "" once it has struck, or is over
	strike strike
	struck bool
	writes int
}

func listen(server string) (p *proxy, err error) {
	p = &proxy{}
	p.Proxy, err = interpose.Listen(server, interpose.Hooks{Command: p.judge, Replied: p.replied})
	return p, err
}

func (p *proxy) close() {
	p.Close()
	p.returning.Wait()
}

// arm makes a fault strike; disarm ends it, and reports how many writes have come.
func (p *proxy) arm(f Fault, at strike) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.strike, p.struck, p.writes = f, at, false, 0
}

func (p *proxy) disarm() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = ""
	p.Return()
	return p.writes
}

// struck are the commands that a fault may strike.
var struck = []string{"find", "insert", "update", "delete", "commitTransaction"}

// judge decides what happens to a command.
func (p *proxy) judge(command string) interpose.Deed {
	if !slices.Contains(struck, command) {
		return interpose.Forward
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	switch {
	case p.fault == "" || p.struck && p.fault != CommandError || command != p.strike.command && p.fault != CommandError:
		return interpose.Forward
	case p.strike.skip > 0:
		p.strike.skip--
		return interpose.Forward
	}
	p.struck = true
	switch p.fault {
	case CommandError:
		return interpose.Refuse
	case LostReply:
		return interpose.DropReply
	case LostRequest:
		return interpose.DropRequest
	}
	if p.strike.executed {
		return interpose.DropReply // the others end when the server has replied
	}
	p.vanish()
	return interpose.DropRequest
}

// replied ends the other connections once a write was executed whose reply is lost.
func (p *proxy) replied(_ string, deed interpose.Deed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if deed == interpose.DropReply && (p.fault == Failover || p.fault == Outage) {
		p.vanish()
	}
}

// vanish ends all connections, new ones as well: for a moment, or until the fault is over.
func (p *proxy) vanish() {
	p.Vanish()
	if p.fault == Failover {
		p.returning.Go(func() {
			time.Sleep(election)
			p.Return()
		})
	}
}
