"""Asks our referee (the example `referee` of tengen-games), and plays random games of OpenSpiel against it."""

import json
import os
import random
import subprocess

import pyspiel

GAMES = int(os.environ.get("CROSS_CHECK_GAMES", "10000"))


class Referee:
    """A running referee. `ask` gives its answer for one game as a dict."""

    def __init__(self):
        self.process = subprocess.Popen(
            [os.environ["REFEREE"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, game, actions):
        words = " ".join(str(action) for action in actions)
        self.process.stdin.write(f"{game}\t{words}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the referee ended at {game} {words}")
        return json.loads(line)


def expect(holds, what):
    """Ends the check with what differs."""
    if not holds:
        raise SystemExit(f"DIFFERS: {what}")


def same_random_games(
    referee, ours, theirs, to_ours=lambda state, action: action, seat=lambda player: player, games=GAMES, seed=1
):
    """Plays random games of OpenSpiel's game `theirs` and compares, ply by ply, who acts and what is legal, and the
    result. `to_ours(state, action)` translates an action, `seat(player)` a player."""
    rng = random.Random(f"{ours} {seed}")
    plies = 0
    game = pyspiel.load_game(theirs)
    for _ in range(games):
        state = game.new_initial_state()
        actions, seen = [], []
        while not state.is_terminal():
            legal = state.legal_actions()
            seen.append((seat(state.current_player()), sorted(to_ours(state, action) for action in legal)))
            action = rng.choice(legal)
            actions.append(to_ours(state, action))
            state.apply_action(action)
        answer = referee.ask(ours, actions)
        where = f"{ours} after {actions}"
        expect(answer["refused"] is None, f"{where}: {answer['refused']}")
        for ply, (expected, position) in enumerate(zip(seen, answer["positions"])):
            expect((position["seat"], position["legal"]) == expected, f"{where}, ply {ply}: {position}, not {expected}")
        expect(answer["reason"] is not None and not answer["positions"][-1]["legal"], f"{where}: the game is over")
        returns = state.returns()
        winner = None if returns[0] == 0 else seat(0 if returns[0] > 0 else 1)
        expect(answer["winner"] == winner, f"{where}: winner {answer['winner']}, not {winner}")
        plies += len(actions)
    print(f"{ours}: {games} random games of {theirs}, {plies} plies: no difference")
