"""Forbidden points and results of the five-in-a-row games against the package `renju`, which derives from Piskvork."""

import collections
import random

from referee import GAMES, Referee, expect
from renju import BoardStatus, RenjuBoard, Rule
from renju.check_forbid import get_foul_type

SIZE = 15
POINTS = 6 * GAMES
FOULS = {1: "double-three", 2: "double-four", 3: "overline"}


def crowded_cell(rng, board):
    """A random empty cell, most often near the centre, so that lines meet."""
    while True:
        row, col = ((rng.randrange(SIZE) + rng.randrange(SIZE)) // 2 for _ in range(2))
        if board[row][col] == 0:
            return row, col


def random_position(rng):
    """Alternating stones without five in a row or foul, and the board as the package sees it."""
    board = [[0] * SIZE for _ in range(SIZE)]
    actions = []
    stones = 2 * rng.randint(8, 26)
    while len(actions) < stones:
        row, col = crowded_cell(rng, board)
        colour = 1 + len(actions) % 2
        board[row][col] = colour
        actions.append(row * SIZE + col)
    return board, actions


def forbidden_points(referee):
    """Every empty point of random positions: forbidden or not, and why."""
    rng = random.Random(7)
    kinds = collections.Counter()
    positions = 0
    while sum(kinds.values()) < POINTS:
        board, actions = random_position(rng)
        answer = referee.ask("renju", actions)
        if answer["refused"] is not None or answer["reason"] is not None:
            continue
        positions += 1
        here = answer["positions"][-1]
        masked = set(here["legal"]) - set(here["playable"])
        for cell in here["legal"]:
            foul = get_foul_type(board, cell // SIZE, cell % SIZE)
            kinds[FOULS.get(foul, "none")] += 1
            expect((foul != 0) == (cell in masked), f"renju after {actions}: cell {cell} is {FOULS.get(foul)}")
            if foul:
                played = referee.ask("renju", actions + [cell])
                expect(
                    (played["winner"], played["reason"]) == (1, FOULS[foul]),
                    f"renju after {actions + [cell]}: {played['reason']}, not {FOULS[foul]}",
                )
    print(f"renju: {sum(kinds.values())} points of {positions} positions, {dict(kinds)}: no difference")


def results(referee, ours, rule, games):
    """Random games to their end: after which stone, who wins."""
    rng = random.Random(ours)
    reasons = collections.Counter()
    for _ in range(games):
        board, grid = RenjuBoard(board_size=SIZE, rule=rule), [[0] * SIZE for _ in range(SIZE)]
        actions = []
        while board.status == BoardStatus.ONGOING and len(actions) < SIZE * SIZE:
            row, col = crowded_cell(rng, grid)
            grid[row][col] = 1
            actions.append(row * SIZE + col)
            board.play_move(row, col)
        before = referee.ask(ours, actions[:-1])
        answer = referee.ask(ours, actions)
        winner = {BoardStatus.BLACK_WIN: 0, BoardStatus.WHITE_WIN: 1}.get(board.status)
        where = f"{ours} after {actions}"
        expect(before["refused"] is None and before["reason"] is None, f"{where}: over too early: {before['reason']}")
        expect(answer["winner"] == winner, f"{where}: {answer['winner']} ({answer['reason']}), not {winner}")
        reasons[answer["reason"]] += 1
    print(f"{ours}: {games} random games, {dict(reasons)}: no difference")


referee = Referee()
forbidden_points(referee)
for name, rule in [
    ("gomoku-freestyle", Rule.FREESTYLE),
    ("gomoku-standard", Rule.STANDARD),
    ("renju", Rule.RENJU),
]:
    results(referee, name, rule, GAMES // 10)
