"""Xiangqi against Fairy-Stockfish (the package `pyffish`): legal moves ply by ply, and ends. Repetition is judged here once
more, from its positions and checks, because Fairy-Stockfish also knows chases, which our rules leave out."""

import collections
import random

import pyffish

from referee import GAMES, Referee, expect

ROWS, COLS = 10, 9
QUIET_MOVES_MAX = 120


def point(text):
    """The index of a point such as `e10`."""
    return (ROWS - int(text[1:])) * COLS + ord(text[0]) - ord("a")


def points(move):
    """Origin and destination of a move such as `e9e10`."""
    cut = 3 if move[2].isdigit() else 2
    return point(move[:cut]), point(move[cut:])


def pieces(fen):
    return sum(symbol.isalpha() for symbol in fen.split()[0])


def third_occurrence(history):
    """What the last position means if it is there for the third time; `history` holds a position, and whether its side to
    move is in check, since the last capture."""
    now = history[-1][0]
    before = [index for index, (position, _) in enumerate(history[:-1]) if position == now]
    if len(before) < 2:
        return None
    checks = [check for _, check in history[before[-1] + 1 :]]
    by_last, by_next = all(checks[-1::-2]), all(checks[-2::-2])
    if by_last == by_next:
        return "repetition", None
    return "perpetual-check", "next" if by_last else "last"


def choose(fen, moves, back, rng, style):
    """A random move; some styles like to take their last move back, some to give check."""
    takes_back, checks = style
    if back in moves and rng.random() < takes_back:
        return back
    for move in rng.sample(moves, min(checks, len(moves))):
        if pyffish.gives_check("xiangqi", fen, [move]):
            return move
    return rng.choice(moves)


def play(rng):
    """A random game: what was legal at each ply, the actions, and how it ended."""
    styles = [rng.choice([(0, 0), (0.02, 0), (0.2, 0), (0.3, 12)]) for _ in range(2)]
    fen = pyffish.start_fen("xiangqi")
    seen, actions, last = [], [], [None, None]
    history, quiet = [(" ".join(fen.split()[:2]), False)], 0
    for turn in range(10_000):
        seat = turn % 2
        moves = pyffish.legal_moves("xiangqi", fen, [])
        if not moves:
            return seen, actions, ("no-moves", 1 - seat)
        end = third_occurrence(history)
        if end:
            winner = {None: None, "next": seat, "last": 1 - seat}[end[1]]
            return seen, actions, (end[0], winner)
        if quiet >= QUIET_MOVES_MAX:
            return seen, actions, ("no-progress", None)
        move = choose(fen, moves, last[seat], rng, styles[seat])
        pairs = [points(move) for move in moves]
        origin, destination = points(move)
        seen.append((seat, sorted({first for first, _ in pairs})))
        seen.append((seat, sorted(second for first, second in pairs if first == origin)))
        actions += [origin, destination]
        cut = 3 if move[2].isdigit() else 2
        last[seat] = move[cut:] + move[:cut]
        after = pyffish.get_fen("xiangqi", fen, [move])
        if pieces(after) < pieces(fen):
            history, quiet = [], 0
        else:
            quiet += 1
        fen = after
        history.append((" ".join(fen.split()[:2]), pyffish.gives_check("xiangqi", fen, [])))
    raise SystemExit("a game without an end")


def main():
    referee = Referee()
    rng = random.Random(5)
    ends = collections.Counter()
    plies = 0
    games = max(GAMES // 200, 10)  # the package takes milliseconds for a list of moves
    for _ in range(games):
        seen, actions, (reason, winner) = play(rng)
        answer = referee.ask("xiangqi", actions)
        where = f"xiangqi after {actions}"
        expect(answer["refused"] is None, f"{where}: {answer['refused']}")
        for ply, (expected, position) in enumerate(zip(seen, answer["positions"])):
            expect((position["seat"], position["legal"]) == expected, f"{where}, ply {ply}: {position}, not {expected}")
        ours = (answer["reason"], answer["winner"])
        expect(ours == (reason, winner), f"{where}: {ours}, not {(reason, winner)}")
        ends[reason] += 1
        plies += len(actions)
    print(f"xiangqi: {games} random games of Fairy-Stockfish, {plies} plies, {dict(ends)}: no difference")


main()
